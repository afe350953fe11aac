import type { Clock } from "@belay/model";
import type { FrameBody, FrameBodyInit } from "@belay/protocol";

export interface ProxyModelConfig {
  readonly clock: Clock;
  readonly name: string;
  /** 16 random bytes, made when the process starts (P7). */
  readonly processId: Uint8Array;
  readonly limits?: Partial<ProxyModelLimits>;
}

export interface ProxyModelLimits {
  /** Requests held for an answer. */
  readonly parked: number;
  /** Answers kept; the oldest go first. */
  readonly answers: number;
}

export type StreamId = number;

export interface ProxyRequest {
  readonly id: StreamId;
  readonly service: string;
  readonly key: string;
  readonly kind: "request" | "socket";
}

export type ProxyModelEvent =
  | { readonly type: "connected" }
  | { readonly type: "disconnected" }
  | { readonly type: "frame"; readonly frame: FrameBody }
  | { readonly type: "tick" }
  /** A client's request whose key was found. */
  | { readonly type: "request"; readonly request: ProxyRequest }
  /** The server refused it before any handler (R1). */
  | {
      readonly type: "refused";
      readonly id: StreamId;
      readonly incarnation: bigint;
      readonly asOf: bigint;
    }
  /** Over, in whatever way. */
  | { readonly type: "ended"; readonly id: StreamId };

export type ProxyModelEffect =
  | { readonly type: "send"; readonly frame: FrameBodyInit }
  /** Send it to that server now. */
  | {
      readonly type: "route";
      readonly id: StreamId;
      readonly address: string;
      readonly incarnation: bigint;
      readonly epoch: bigint;
    }
  | { readonly type: "fail"; readonly id: StreamId; readonly reason: string }
  /** Reset them (P1, P3); they count as ended. */
  | { readonly type: "reset"; readonly ids: readonly StreamId[] }
  /** Close with 4421 at a frame boundary (M2). `ended` follows. */
  | { readonly type: "close-sockets"; readonly ids: readonly StreamId[] }
  /** Drop the connection: what came breaks P2 or G2. */
  | { readonly type: "close"; readonly reason: string };

/** The proxy's half of the ownership rules, as a model; the real one is native/owner. */
export interface ProxyModel {
  handle(event: ProxyModelEvent): void;
  take(): readonly ProxyModelEffect[];
  wakeAt(): number;
  /** What it would use now; undefined: nothing may be believed about it. */
  answerFor(service: string, key: string): { incarnation: bigint; epoch: bigint } | undefined;
  readonly applied: bigint;
}
