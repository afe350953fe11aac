/**
 * What each state of a shard answers to each event, in full: the compiler refuses an unanswered
 * pair. `free` has no row; `orphaned` has one whose owner's incarnation has ended.
 */
export type ShardState = "free" | "owned" | "moving" | "revoked" | "released" | "orphaned";

export interface ShardActions {
  /** A1 */
  resolve: "place" | "answer" | "answer-moving" | "place-again";
  /** A7 */
  mint: "claim" | "compare" | "claim-again";
  /** M1 */
  move: "begin" | "refuse-free" | "refuse-moving";
  /** M2: all live proxies are `dropped`, or 100 ms have passed. */
  revokeDue: "revoke" | "ignore";
  /** M3, of the current (epoch, incarnation). */
  release: "begin-released" | "take" | "ignore" | "acknowledge";
  /** S3, S8, Leave */
  ownerEnded: "orphan" | "take" | "ignore";
  /** M4's condition on the proxies is met. */
  clear: "settle" | "ignore";
  /** A5 */
  idle: "ask-release" | "forget" | "ignore";
  busy: "touch" | "ignore";
}

export const SHARD_TABLE: Readonly<Record<ShardState, Readonly<ShardActions>>> = {
  free: {
    resolve: "place",
    mint: "claim",
    move: "refuse-free",
    revokeDue: "ignore",
    release: "acknowledge",
    ownerEnded: "ignore",
    clear: "ignore",
    idle: "ignore",
    busy: "ignore",
  },
  owned: {
    resolve: "answer",
    mint: "compare",
    move: "begin",
    revokeDue: "ignore",
    release: "begin-released",
    ownerEnded: "orphan",
    clear: "ignore",
    idle: "ask-release",
    busy: "touch",
  },
  moving: {
    resolve: "answer-moving",
    mint: "compare",
    move: "refuse-moving",
    revokeDue: "revoke",
    release: "take",
    ownerEnded: "take",
    clear: "ignore",
    idle: "ignore",
    busy: "ignore",
  },
  revoked: {
    resolve: "answer-moving",
    mint: "compare",
    move: "refuse-moving",
    revokeDue: "ignore",
    release: "take",
    ownerEnded: "take",
    clear: "ignore",
    idle: "ignore",
    busy: "ignore",
  },
  released: {
    resolve: "answer-moving",
    mint: "compare",
    move: "refuse-moving",
    revokeDue: "ignore",
    release: "ignore",
    ownerEnded: "ignore",
    clear: "settle",
    idle: "ignore",
    busy: "ignore",
  },
  orphaned: {
    resolve: "place-again",
    mint: "claim-again",
    move: "refuse-free",
    revokeDue: "ignore",
    release: "acknowledge",
    ownerEnded: "ignore",
    clear: "ignore",
    idle: "forget",
    busy: "ignore",
  },
};

/** The same for an incarnation. `absent`: it was never there, or has ended. */
export type ServerState = "absent" | "active" | "draining";

export interface ServerActions {
  /** S1 */
  renew: "renew" | "tell-expired";
  resume: "resume" | "tell-expired";
  /** A2 */
  place: "allow" | "refuse";
  /** M6 */
  drain: "begin" | "ignore" | "refuse";
  /** Leave, Died (S8) */
  end: "end" | "tell-ended";
  /** S3 */
  leaseOver: "expire" | "ignore";
}

export const SERVER_TABLE: Readonly<Record<ServerState, Readonly<ServerActions>>> = {
  absent: {
    renew: "tell-expired",
    resume: "tell-expired",
    place: "refuse",
    drain: "refuse",
    end: "tell-ended",
    leaseOver: "ignore",
  },
  active: {
    renew: "renew",
    resume: "resume",
    place: "allow",
    drain: "begin",
    end: "end",
    leaseOver: "expire",
  },
  draining: {
    renew: "renew",
    resume: "resume",
    place: "refuse",
    drain: "ignore",
    end: "end",
    leaseOver: "expire",
  },
};
