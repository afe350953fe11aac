import type { FeedEntryInit } from "../frame-init.ts";

/** One commit's entries. */
export interface Published {
  readonly revision: bigint;
  readonly entries: readonly FeedEntryInit[];
  readonly at: number;
}

/** The entries of the last commits, in order, so that a reader can go on where it was (F1). */
export class Feed {
  readonly #entriesMax: number;
  readonly #batches: Published[] = [];
  #start = 0;
  #entryCount = 0;
  #floor: bigint;
  #last: bigint;

  /**
   * `floor`: who has seen this revision has missed nothing so far. `last`: the revision that the next
   * batch names as the one before it.
   */
  constructor(floor: bigint, last: bigint, entriesMax: number) {
    this.#floor = floor;
    this.#last = last;
    this.#entriesMax = entriesMax;
  }

  /** Revision of the last published batch. */
  get last(): bigint {
    return this.#last;
  }

  append(revision: bigint, entries: readonly FeedEntryInit[], at: number): void {
    this.#batches.push({ revision, entries, at });
    this.#last = revision;
    this.#entryCount += entries.length;
    while (this.#entryCount > this.#entriesMax && this.#start < this.#batches.length - 1) {
      const oldest = this.#batches[this.#start];
      if (oldest === undefined) break;
      this.#entryCount -= oldest.entries.length;
      this.#floor = oldest.revision;
      this.#start += 1;
    }
    if (this.#start > 1024 && this.#start * 2 > this.#batches.length) {
      this.#batches.splice(0, this.#start);
      this.#start = 0;
    }
  }

  /**
   * What was published after `revision`, in order; undefined: not kept any more, or more than
   * `countMax` batches, so that a snapshot is shorter.
   */
  since(revision: bigint, countMax: number): readonly Published[] | undefined {
    if (revision < this.#floor) return undefined;
    const start = this.#firstAfter((batch) => batch.revision > revision);
    if (this.#batches.length - start > countMax) return undefined;
    return this.#batches.slice(start);
  }

  /** Batches that a proxy which acknowledged `revision` has still to acknowledge. */
  countAfter(revision: bigint): number {
    return this.#batches.length - this.#firstAfter((batch) => batch.revision > revision);
  }

  /** P8: what was published at or before `at` must have been acknowledged up to this revision. */
  publishedBy(at: number): bigint {
    const index = this.#firstAfter((batch) => batch.at > at);
    const batch = index > this.#start ? this.#batches[index - 1] : undefined;
    return batch?.revision ?? 0n;
  }

  #firstAfter(isAfter: (batch: Published) => boolean): number {
    let low = this.#start;
    let high = this.#batches.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const batch = this.#batches[middle];
      if (batch !== undefined && isAfter(batch)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
