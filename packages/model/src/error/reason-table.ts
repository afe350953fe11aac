import { exitCodes } from "./exit-codes.ts";

/** Who has to act: the caller, who runs Belay, the stateful server behind it, or Belay's authors. */
export type Fault = "client" | "operator" | "server" | "belay";

/** What follows from an error code, wherever it is shown. */
export interface ErrorFacts {
  /** Status on the admin API and at an edge. */
  readonly http: number;
  /** gRPC status number. */
  readonly grpc: number;
  /** Exit code of the CLI, one of `exitCodes`. */
  readonly exit: number;
  readonly fault: Fault;
  /** What happened, in general. */
  readonly says: string;
  /** What to do, in one sentence. */
  readonly hint: string;
}

/** One answer that an edge makes itself; `x-belay-reason` carries the code. */
export interface Reason extends ErrorFacts {
  /** Value of Retry-After in milliseconds; 0: sending it again does not help by itself. */
  readonly retryAfterMs: number;
}

const { failed, notFound, refused } = exitCodes;
const badRequest = { http: 400, grpc: 3, retryAfterMs: 0, fault: "client", exit: refused } as const;
const notThere = { http: 404, grpc: 5, retryAfterMs: 0, fault: "client", exit: notFound } as const;
const later = {
  http: 503,
  grpc: 14,
  retryAfterMs: 1000,
  fault: "operator",
  exit: refused,
} as const;

/**
 * Every reason of the data path. The Rust module carries the same table: both are compared with
 * proto/testdata/reasons.json.
 */
export const reasonTable = {
  "no-key": {
    ...badRequest,
    says: "the request has no key in any of the places that the service file names",
    hint: "Send the key in one of the places that `belay explain METHOD URL` lists.",
  },
  "bad-key": {
    ...badRequest,
    says: "the key is not 1-256 bytes of UTF-8 without control characters, or its encoding is broken",
    hint: "Send a key of 1-256 bytes of UTF-8, percent-encoded once in paths and queries.",
  },
  "key-conflict": {
    ...badRequest,
    says: "two places of the request give different keys",
    hint: "Send the key in one place, or the same key in each.",
  },
  "bad-envelope": {
    ...badRequest,
    says: "the protobuf body is broken, or compressed, so the envelope cannot be read",
    hint: "Send a complete, uncompressed protobuf message.",
  },
  "server-unknown": {
    ...notThere,
    says: "no server of this id was ever registered for the service",
    hint: "`belay get servers` lists the servers that are registered.",
  },
  "server-gone": {
    ...notThere,
    http: 503,
    grpc: 14,
    says: "the server of this id is gone; its state is gone with it",
    hint: "Start anew on another server: what this one held in memory is lost.",
  },
  "unknown-key": {
    ...notThere,
    says: "the service mints its keys, and nobody has this one",
    hint: "Begin a new session: send the first request without a key.",
  },
  "no-server": {
    ...later,
    says: "no server of the service is active",
    hint: "Start a server: `belay run --service NAME --port auto -- COMMAND`.",
  },
  full: {
    ...later,
    says: "every active server of the service is at its capacity",
    hint: "Start another server, or raise the capacity with which servers register.",
  },
  "no-snapshot": {
    ...later,
    says: "this proxy has not yet received a complete snapshot from the coordinator",
    hint: "Wait; if it lasts, see whether the coordinator runs: `belay doctor`.",
  },
  "service-unknown": {
    ...later,
    exit: notFound,
    says: "the coordinator does not know the service (yet)",
    hint: "Apply the service file: `belay apply FILE`; `belay get services` lists them.",
  },
  "lease-over": {
    ...later,
    says: "the proxy may no longer believe what it knows: the coordinator is silent for longer than the lease",
    hint: "Bring the coordinator back: `belay doctor` says what cannot be reached.",
  },
  "coordinator-silent": {
    ...later,
    says: "the key has no known owner and the coordinator does not answer",
    hint: "Bring the coordinator back: `belay doctor` says what cannot be reached.",
  },
  moving: {
    ...later,
    says: "the key was on the move for longer than the request may be parked",
    hint: "Send it again; if it lasts, see in `belay get shards` which owner does not let go.",
  },
  "park-full": {
    ...later,
    says: "too many requests are parked at this proxy",
    hint: "Send it again later; if it lasts, add edges or make `ownership.drain` shorter.",
  },
  refused: {
    ...later,
    says: "the servers refused the request more often than it may be sent again",
    hint: "Send it again; if it lasts, compare `belay owner SERVICE KEY` with the servers' logs.",
  },
  "too-large-to-resend": {
    ...later,
    fault: "client",
    says: "the server refused the request and its body is larger than the replay buffer",
    hint: "Send it again, or raise `body.replay` in the service file.",
  },
  "outcome-unknown": {
    ...later,
    retryAfterMs: 0,
    says: "ownership was lost after the request reached a handler: it may or may not have taken effect",
    hint: "Ask the service what became of it before sending it again.",
  },
  "mint-conflict": {
    ...badRequest,
    http: 502,
    grpc: 14,
    fault: "server",
    says: "the server minted a key that another server owns",
    hint: "Make the server's keys unique across servers: 128 random bits, for example.",
  },
  "mint-unconfirmed": {
    ...later,
    says: "the coordinator did not confirm the minted key in time; the answer is withheld",
    hint: "Send the first request again; if it lasts, see `belay doctor`.",
  },
  internal: {
    ...badRequest,
    http: 500,
    grpc: 13,
    fault: "belay",
    exit: failed,
    says: "a fault in Belay itself; the log of the proxy has the details",
    hint: "Please report it with the log lines around it.",
  },
} as const satisfies Record<string, Reason>;

export type ReasonCode = keyof typeof reasonTable;
