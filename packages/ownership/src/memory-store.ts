import type { Random } from "@belay/model";
import {
  type Batch,
  type Change,
  type CommitOutcome,
  type Row,
  type RowRef,
  type Store,
  type StoreMeta,
  type TakeOver,
  takeOverRevision,
} from "./store.ts";

const GENERATION_BYTES = 16;

/** What names a row, for maps. */
function keyOf(ref: RowRef): string {
  if (ref.table === "service") return `service\n${ref.name}`;
  if (ref.table === "server") return `server\n${ref.incarnation}`;
  const name = ref.table === "shard" ? ref.key : ref.serverId;
  return `${ref.table}\n${ref.service}\n${name}`;
}

/** A store that forgets with the process: for tests and the simulator. Nobody else can write to it. */
export class MemoryStore implements Store {
  readonly name = "memory";
  readonly exclusive: boolean = true;
  readonly #rows = new Map<string, Row>();
  #meta: StoreMeta;

  constructor(random: Random) {
    this.#meta = { generation: random.bytes(GENERATION_BYTES), term: 0n, revision: 0n };
  }

  get meta(): StoreMeta {
    return this.#meta;
  }

  takeOver(unixSeconds: number): Promise<TakeOver> {
    return Promise.resolve(this.takeOverNow(unixSeconds));
  }

  load(): Promise<Iterable<Row>> {
    return Promise.resolve(this.rows());
  }

  /** `takeOver`, at once. */
  takeOverNow(unixSeconds: number): TakeOver {
    const previousRevision = this.#meta.revision;
    this.#meta = {
      ...this.#meta,
      term: this.#meta.term + 1n,
      revision: takeOverRevision(previousRevision, unixSeconds),
    };
    return { ...this.#meta, previousRevision };
  }

  /** All rows, as they are now. */
  rows(): Row[] {
    return Array.from(this.#rows.values());
  }

  /** Another store with the same contents, as a backup that is restored. */
  copy(): MemoryStore {
    const copy = new MemoryStore({ next: () => 0, bytes: () => this.#meta.generation });
    copy.#meta = this.#meta;
    for (const [key, row] of this.#rows) copy.#rows.set(key, row);
    return copy;
  }

  commit(batch: Batch): Promise<CommitOutcome> {
    return Promise.resolve(this.commitNow(batch));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** `commit`, at once. */
  commitNow(batch: Batch): CommitOutcome {
    const { term, revision } = this.#meta;
    if (term !== batch.term) return { outcome: "deposed", term };
    // Sent again after an unknown outcome (T3).
    if (revision === batch.to) return { outcome: "committed" };
    if (revision !== batch.from) {
      return {
        outcome: "failed",
        message: `the store is at revision ${revision}, the batch begins at ${batch.from}`,
      };
    }
    for (const change of batch.changes) this.#apply(change);
    this.#meta = { ...this.#meta, revision: batch.to };
    return { outcome: "committed" };
  }

  #apply(change: Change): void {
    if (change.op === "put") this.#rows.set(keyOf(change.row), change.row);
    else this.#rows.delete(keyOf(change.ref));
  }
}
