import type { Refusal } from "@belay/ownership";

export interface ClientRequest {
  readonly id: number;
  readonly key: string;
  readonly kind: "request" | "socket";
  readonly durationMs: number;
}

/** A request on its way from a proxy to a server. */
export interface OpenAttempt {
  readonly request: ClientRequest;
  readonly attempt: number;
  readonly address: string;
  readonly incarnation: bigint;
  readonly epoch: bigint;
}

/** A request as it arrives at a server. */
export interface Arrival {
  /** Of this attempt. */
  readonly attempt: number;
  /** Of the client's request, however often it is sent. */
  readonly request: number;
  readonly key: string;
  readonly incarnation: bigint;
  readonly epoch: bigint;
  readonly kind: "request" | "socket";
  readonly durationMs: number;
  reply(outcome: Outcome): void;
}

export type Outcome =
  | { readonly type: "answer"; readonly epoch: bigint }
  | { readonly type: "refused"; readonly refusal: Refusal }
  /** Reset, or the process has died. */
  | { readonly type: "lost" };
