import type { After, Hosts, ProxyLoad, Role, ServerLoad } from "@belay/protocol";
import type { ServerRow, ServiceRow, TombstoneRow } from "../store.ts";
import type { PeerId } from "./event.ts";

/** A connection. `role` is unspecified until its Hello. */
export interface Peer {
  readonly id: PeerId;
  role: Role;
  name: string;
  /** T4: its Hello showed a revision that the store has lost; nothing it holds is renewed. */
  wentBack: boolean;
  /** Gets the feed from its snapshot or resume on. */
  following: boolean;
  server: Server | undefined;
  proxy: Proxy | undefined;
  closing: boolean;
}

export interface Service {
  row: ServiceRow;
  readonly shards: Map<string, Shard>;
  /** Live incarnations by server id. */
  readonly servers: Map<string, Server>;
  /** Gone ids, oldest first. */
  readonly tombstones: Map<string, TombstoneRow>;
  /** Rises when a report of hosts comes or goes, so that `Server.reachable` is judged anew (A4). */
  hostsVersion: number;
  /** Shards to look at for idleness, by the second of `touchedAt` + idle (A5). */
  readonly idleBuckets: Map<number, Shard[]>;
}

/** A live incarnation. */
export interface Server {
  readonly service: Service;
  row: ServerRow;
  peer: Peer | undefined;
  /** S3: not before this may it be expired. */
  leaseUntil: number;
  readonly registeredAt: number;
  readonly shards: Set<Shard>;
  readonly moving: Set<Shard>;
  load: ServerLoad | undefined;
  reachable: boolean;
  reachableVersion: number;
  /** Shards still to be moved by its drain, the next last. */
  drainList: Shard[] | undefined;
}

/** M4's condition on the proxies, being watched; `clearance.ts` says how. */
export interface Clearance {
  readonly service: Service;
  /** Of the revoking entry's commit. */
  readonly revision: bigint;
  readonly clear: boolean;
  readonly allDropped: boolean;
  readonly needsQuiet: boolean;
  waiting(): Iterable<Proxy>;
  join(proxy: Proxy): void;
  dropped(proxy: Proxy): void;
  quiet(proxy: Proxy): void;
  leave(proxy: Proxy): void;
  timeReached(): void;
  judge(): void;
}

type MovePhase = "moving" | "revoked" | "released";

export interface Move {
  readonly since: bigint;
  readonly to: string;
  /** A5: nobody asked for it, so nobody needs to get it. */
  readonly idle: boolean;
  phase: MovePhase;
  after: After;
  readonly clearance: Clearance;
}

/**
 * A row. One small object each: about 150 bytes and the key's text, above the 45-60 bytes that
 * typed arrays would take.
 */
export interface Shard {
  readonly service: Service;
  readonly key: string;
  owner: bigint;
  epoch: bigint;
  touchedAt: number;
  move: Move | undefined;
}

/** A proxy's process (P7); outlives its connections for as long as it may believe anything. */
export interface Proxy {
  readonly id: string;
  readonly processId: Uint8Array;
  name: string;
  pool: string;
  software: string;
  peer: Peer | undefined;
  /** Time of the last FeedLease sent; undefined: never, so it believes nothing (P1). */
  renewedAt: number | undefined;
  /** P3, cumulative. */
  dropped: bigint;
  /** Revision of the snapshot its connection began with; 0 if it resumed. */
  snapshotRevision: bigint;
  /** A renewal that P8 holds back until the acknowledgement comes. */
  heldRenewal: number | undefined;
  readonly hosts: Map<string, ReadonlySet<Hosts["addresses"][number]>>;
  load: ProxyLoad | undefined;
}
