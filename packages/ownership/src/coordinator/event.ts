import type { Clock, Logger, Random } from "@belay/model";
import type { FrameBody, FrameBodyInit } from "@belay/protocol";
import type { Batch, CommitOutcome, Row, TakeOver } from "../store.ts";
import type { CoordinatorLimits } from "./limits.ts";

/** A connection, named by whoever owns the sockets; never used again after `disconnected`. */
export type PeerId = number;

export type CoordinatorEvent =
  | { readonly type: "connected"; readonly peer: PeerId }
  | { readonly type: "disconnected"; readonly peer: PeerId }
  /** A decoded frame. `Hello.token` was checked by whoever owns the socket. */
  | { readonly type: "frame"; readonly peer: PeerId; readonly frame: FrameBody }
  /** At `wakeAt`, or any time. */
  | { readonly type: "tick" }
  /** The outcome of the one batch that a `commit` effect named. */
  | { readonly type: "committed"; readonly outcome: CommitOutcome };

/** To be carried out in order. */
export type Effect =
  | { readonly type: "send"; readonly peer: PeerId; readonly frame: FrameBodyInit }
  /** The same bytes to all: encode once. */
  | {
      readonly type: "broadcast";
      readonly peers: readonly PeerId[];
      readonly frame: FrameBodyInit;
    }
  /** After all that was sent to it before. `disconnected` follows as for any other end. */
  | { readonly type: "close"; readonly peer: PeerId; readonly reason: string }
  /** Answer with exactly one `committed` event; the next comes only after it. */
  | { readonly type: "commit"; readonly batch: Batch }
  /** Deposed (T1) or undecided for L/3 (T3): the process must end, without sending anything more. */
  | {
      readonly type: "exit";
      readonly code: "deposed" | "undecided" | "disk-full";
      readonly message: string;
    };

export interface CoordinatorConfig {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Longest time from a clock read to the act that relies on it; ≥ 200 ms outside tests. */
  readonly marginMs: number;
  /** ρ, 0.01 by default. */
  readonly rateError?: number;
  readonly limits?: Partial<CoordinatorLimits>;
  /** For AskStatus. */
  readonly storeName: string;
  /** `Store.exclusive`: else renewals are answered only after a commit, at most 200 ms later. */
  readonly storeExclusive: boolean;
}

/** What a take-over read: the term first, the rows after it was durable (T1). */
export interface LoadedState {
  readonly meta: TakeOver;
  readonly rows: Iterable<Row>;
}

/** Plain numbers for metrics, read at a scrape. */
export interface CoordinatorStats {
  readonly term: bigint;
  readonly revision: bigint;
  readonly feedRevision: bigint;
  readonly services: number;
  readonly servers: number;
  readonly shards: number;
  readonly proxies: number;
  readonly peers: number;
  readonly moving: number;
  readonly waitingEvents: number;
  readonly pendingResolves: number;
  readonly holdLeftMs: number;
  /** Since the load. */
  readonly commits: number;
  readonly placements: number;
  readonly moves: number;
  readonly expiries: number;
  readonly renewals: number;
  /** T4: times that a peer had seen more than the store holds. */
  readonly storeWentBack: number;
}

/**
 * The coordinator as a pure machine. Hand it every event, then `take()` and carry out what comes, in
 * order: at the end of each turn of the event loop, so that frames read together share a commit.
 */
export interface Coordinator {
  handle(event: CoordinatorEvent): void;
  take(): readonly Effect[];
  /** When the next `tick` is due, on the clock given; Infinity: never. */
  wakeAt(): number;
  stats(): CoordinatorStats;
}
