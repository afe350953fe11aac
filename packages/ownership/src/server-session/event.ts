import type { Clock } from "@belay/model";
import type { FrameBody, FrameBodyInit } from "@belay/protocol";

export interface ServerSessionConfig {
  /** Runs in suspend (S6). */
  readonly clock: Clock;
  readonly service: string;
  readonly serverId: string;
  readonly address: string;
  readonly zone: string;
  /** True: this machine admits. False: an agent beside an unmodified server, which releases at once. */
  readonly guarded: boolean;
  /** Shards it takes at most; 0: no limit. */
  readonly capacity: number;
  /** 16..64 random bytes, made anew for each registration. */
  newSecret(): Uint8Array;
  readonly limits?: Partial<ServerSessionLimits>;
}

export interface ServerSessionLimits {
  /** Requests begun or waiting for a confirmation. */
  readonly requests: number;
  /** Keys that wait for a confirmation (G2). */
  readonly confirms: number;
}

/** Chosen by the adapter; unique among the requests that have not ended. */
export type RequestId = number;

/** A request before its handler (G1). */
export interface Admission {
  readonly id: RequestId;
  /** Sockets are closed with 4421 when their shard is revoked; requests run to the drain deadline. */
  readonly kind: "request" | "socket";
  /** From `x-belay-incarnation`; undefined: the header is missing (refused). */
  readonly incarnation: bigint | undefined;
  /** Undefined: keyless or addressed by server id: admitted by incarnation and lease alone. */
  readonly key: string | undefined;
  /** From `x-belay-epoch`; 0n: missing. */
  readonly epoch: bigint;
}

export type RefusalReason = "moved" | "expired" | "unknown" | "not-ready";

/**
 * `x-belay-refused: <incarnation>; as-of=<asOf>; reason=<reason>` (G4). The incarnation is the one
 * that the request addressed, also when that is a former life of this server: a proxy drops a
 * refusal of any other.
 */
export interface Refusal {
  readonly type: "refuse";
  readonly incarnation: bigint;
  readonly asOf: bigint;
  readonly reason: RefusalReason;
}

export type Decision =
  /** Hand over in this very turn. `epoch` 0n: keyless. Call `end` when the request is over. */
  | { readonly type: "admit"; readonly epoch: bigint }
  /** Wait for the effect `decided` with this id (G2). */
  | { readonly type: "ask" }
  | Refusal;

export type ServerSessionEvent =
  | { readonly type: "connected" }
  | { readonly type: "disconnected" }
  | { readonly type: "frame"; readonly frame: FrameBody }
  | { readonly type: "tick" }
  /** SIGTERM (M6). Ends with the effect `drained`. */
  | { readonly type: "drain" }
  /** Stopped and no request running: ends the incarnation. */
  | { readonly type: "leave" };

export type ResetReason = "lease-over" | "expired" | "drain-over" | "released";

export type ServerSessionEffect =
  | { readonly type: "send"; readonly frame: FrameBodyInit }
  /** The answer to an `ask`. Admitted: in this very turn. */
  | {
      readonly type: "decided";
      readonly id: RequestId;
      readonly decision: Exclude<Decision, { type: "ask" }>;
    }
  /** Drop answers not begun (503 outcome-unknown), reset begun ones (S5, G6). They count as ended. */
  | {
      readonly type: "reset";
      readonly requests: readonly RequestId[];
      readonly reason: ResetReason;
    }
  /** Close with 4421 after the message in hand (W2). Call `end` when closed. */
  | { readonly type: "close-sockets"; readonly requests: readonly RequestId[] }
  | { readonly type: "registered"; readonly incarnation: bigint; readonly leaseMs: number }
  /** The incarnation has ended; a new registration follows by itself. */
  | { readonly type: "expired"; readonly incarnation: bigint; readonly reason: string }
  | { readonly type: "granted"; readonly key: string; readonly epoch: bigint }
  | { readonly type: "given-up"; readonly key: string; readonly epoch: bigint }
  | { readonly type: "draining"; readonly remaining: number }
  | { readonly type: "drained" }
  | { readonly type: "ended" }
  /** Not registered yet, tried again by itself: the service is not defined, the address is taken … */
  | {
      readonly type: "waiting";
      readonly code: string;
      readonly message: string;
      readonly retryAfterMs: number;
    }
  /** The coordinator refuses the registration for good (guard-mismatch, bad-address …). */
  | { readonly type: "refused"; readonly code: string; readonly message: string };

/** A server's side of ownership. Hand it events, then `take()` and carry out what comes, in order. */
export interface ServerSession {
  handle(event: ServerSessionEvent): void;
  take(): readonly ServerSessionEffect[];
  wakeAt(): number;
  /** G1: reads the clock; the hand-over to the handler is in the same turn. */
  admit(admission: Admission): Decision;
  /** G6: before the first byte of an answer and each message: may it still go out? */
  mayAnswer(id: RequestId): boolean;
  /** The request is over, in whatever way. */
  end(id: RequestId): void;
  /** The load told with renewals. */
  setLoad(requestsPerSecond: number): void;
  readonly incarnation: bigint;
  /** Epoch held for `key` and active or draining; 0n: none. */
  epochOf(key: string): bigint;
  readonly leaseLeftMs: number;
  readonly heldShards: number;
}
