import { After, Placement, ServerState } from "@belay/protocol";

/** The layout of rows that this version reads and writes. A store with a higher one is refused. */
export const STORE_SCHEMA_VERSION = 1;

/** The one row on which every commit is conditional (T1), and the store's identity (T4). */
export interface StoreMeta {
  /** 16 random bytes, new at create, restore and import. */
  readonly generation: Uint8Array;
  readonly term: bigint;
  readonly revision: bigint;
}

export interface ServiceRow {
  readonly table: "service";
  readonly name: string;
  /** L of registrations from now on. */
  readonly leaseMs: number;
  /** F, told to proxies. */
  readonly feedLeaseMs: number;
  /** F that waits count with: the higher one until W(old) after a lowering has passed. */
  readonly waitFeedLeaseMs: number;
  readonly idleMs: number;
  readonly drainMs: number;
  readonly parkMs: number;
  readonly guarded: boolean;
  readonly minted: boolean;
  readonly placement: Placement;
  readonly movesPerSecond: number;
  /** No longer defined; the row stays until its last server is gone. */
  readonly removed: boolean;
}

/** A live incarnation. L is fixed for it (H17). */
export interface ServerRow {
  readonly table: "server";
  readonly incarnation: bigint;
  readonly service: string;
  readonly serverId: string;
  readonly address: string;
  readonly zone: string;
  readonly guarded: boolean;
  /** Shards it takes at most; 0: no limit. */
  readonly capacity: number;
  /** The bytes themselves: the pure core has no hash; the store's folder is 0700. */
  readonly secret: Uint8Array;
  readonly leaseMs: number;
  readonly state: ServerState;
}

/** An id that was registered once and is gone (`server-gone`). */
export interface TombstoneRow {
  readonly table: "tombstone";
  readonly service: string;
  readonly serverId: string;
  readonly incarnation: bigint;
  readonly after: After;
  /** M4's condition for this end is met: its shards and its address are free. */
  readonly clear: boolean;
}

/**
 * A shard that somebody owns, or owned: its incarnation may have ended since, because rows of an
 * ended server are placed again when resolved, never swept.
 */
export interface ShardRow {
  readonly table: "shard";
  readonly service: string;
  readonly key: string;
  readonly incarnation: bigint;
  readonly epoch: bigint;
  /** Revision of the commit that began its move (M1), 0: none. */
  readonly movingSince: bigint;
  /** Server id that the move was asked to go to, empty: by placement. */
  readonly moveTo: string;
}

export type Row = ServiceRow | ServerRow | TombstoneRow | ShardRow;

/** What names a row. */
export type RowRef =
  | { readonly table: "service"; readonly name: string }
  | { readonly table: "server"; readonly incarnation: bigint }
  | { readonly table: "tombstone"; readonly service: string; readonly serverId: string }
  | { readonly table: "shard"; readonly service: string; readonly key: string };

export type Change =
  | { readonly op: "put"; readonly row: Row }
  | { readonly op: "delete"; readonly ref: RowRef };

/**
 * Many rows in one commit, conditional on (term, from). (term, to) is the batch's id: a term has one
 * writer, which has one batch in flight and uses no revision twice, so a batch sent again after an
 * unknown outcome is recognised by them (T3).
 */
export interface Batch {
  readonly term: bigint;
  readonly from: bigint;
  readonly to: bigint;
  readonly changes: readonly Change[];
}

export type CommitOutcome =
  | { readonly outcome: "committed" }
  /** Another term is in the store: this coordinator must exit at once (T1). */
  | { readonly outcome: "deposed"; readonly term: bigint }
  /** For certain not written: full disk, locked. `message` says what to do. */
  | { readonly outcome: "failed"; readonly message: string; readonly code?: "disk-full" }
  /** It may or may not have been written, now or later (T3). */
  | { readonly outcome: "unknown"; readonly message: string; readonly code?: "disk-full" };

/** A take-over's result: the term that is now mine, and where the feed may be resumed from. */
export interface TakeOver extends StoreMeta {
  /** Before T4 lifted it: a proxy that has seen exactly this revision has missed nothing. */
  readonly previousRevision: bigint;
}

/** Where ownership is kept. One contract suite: packages/testkit/src/store-contract.ts. */
export interface Store {
  /** For people: "sqlite", "memory". */
  readonly name: string;
  /** Nobody else can write while it is open: renewals alone need no commit (S1, T5). */
  readonly exclusive: boolean;
  /**
   * T1, T4: commits term + 1 and revision := max(revision + 1, unixSeconds · 2²⁰). Rejects with a
   * BelayError (store-locked, disk-full, store-failed) that says what to do.
   */
  takeOver(unixSeconds: number): Promise<TakeOver>;
  /** All rows, as of the last commit, in no order. To be called after takeOver and before commits. */
  load(): Promise<Iterable<Row>>;
  /** All or nothing. Never rejects: what went wrong is an outcome. One at a time. */
  commit(batch: Batch): Promise<CommitOutcome>;
  close(): Promise<void>;
}

/** The revision that a take-over starts from (T4): above all that any lost tail can have given. */
export function takeOverRevision(revision: bigint, unixSeconds: number): bigint {
  const byTime = BigInt(Math.floor(unixSeconds)) << 20n;
  return byTime > revision ? byTime : revision + 1n;
}

/** Values of enums as stores keep them: a number that this version does not know is an error. */
export const storedEnum = {
  placement: (value: number): Placement => known(Placement, value),
  serverState: (value: number): ServerState => known(ServerState, value),
  after: (value: number): After => known(After, value),
};

function known<Value>(values: Readonly<Record<string, Value>>, value: number): Value {
  const found = Object.values(values).find((candidate) => candidate === value);
  if (found === undefined) throw new RangeError(`the store holds ${value}, which is not known`);
  return found;
}
