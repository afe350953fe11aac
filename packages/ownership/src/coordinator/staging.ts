import type { FeedEntryInit, ShardEpochInit } from "../frame-init.ts";
import type { Batch, Change, Row, RowRef } from "../store.ts";
import type { Server } from "./state.ts";

/**
 * The batch being put together (T2). Memory is changed at once, but nothing leaves: what is to be
 * sent waits here, as closures that read the state of the moment in which they run, right after the
 * commit and before any other event.
 */
export class Staging {
  readonly #from: bigint;
  #to: bigint;
  readonly changes: Change[] = [];
  readonly entries: FeedEntryInit[] = [];
  readonly answers: (() => void)[] = [];
  readonly grants = new Map<Server, ShardEpochInit[]>();
  /** Draining servers whose count has changed. */
  readonly progress = new Set<Server>();
  #wanted = false;

  constructor(committed: bigint) {
    this.#from = committed;
    this.#to = committed;
  }

  /** True: something waits for a commit, so nothing may be answered before it. */
  get dirty(): boolean {
    return this.#wanted;
  }

  /** The revision that this batch will have, unless it rises further. */
  get revision(): bigint {
    return this.#to;
  }

  put(row: Row): void {
    this.#touch();
    this.changes.push({ op: "put", row });
  }

  delete(ref: RowRef): void {
    this.#touch();
    this.changes.push({ op: "delete", ref });
  }

  publish(entry: FeedEntryInit): void {
    this.#touch();
    this.entries.push(entry);
  }

  /** A commit is wanted even without a row: renewals on a store that others can write (S1). */
  want(): void {
    this.#touch();
  }

  /** A revision of this batch above `floor`, for an epoch: it rises also within a batch (I3). */
  revisionAbove(floor: bigint): bigint {
    this.#touch();
    if (this.#to <= floor) this.#to = floor + 1n;
    return this.#to;
  }

  /** A revision that nothing else in this batch has, for an incarnation. */
  ownRevision(): bigint {
    const first = !this.#wanted;
    this.#touch();
    if (!first) this.#to += 1n;
    return this.#to;
  }

  /** T4: the next revision is above `revision`. */
  liftAbove(revision: bigint): void {
    this.#touch();
    if (this.#to <= revision) this.#to = revision + 1n;
  }

  batch(term: bigint): Batch {
    return { term, from: this.#from, to: this.#to, changes: this.changes };
  }

  #touch(): void {
    if (this.#wanted) return;
    this.#wanted = true;
    this.#to = this.#from + 1n;
  }
}
