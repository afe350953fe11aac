import type { FrameBodyInit } from "@belay/protocol";

/** Codes of `Problem` frames and of refused `Answer`s that this machine sends; all in docs/reference/errors.md. */
export type ProblemCode =
  | "bad-frame"
  | "unknown-version"
  | "role-unknown"
  | "service-unknown"
  | "server-id-taken"
  | "address-taken"
  | "bad-address"
  | "bad-server-id"
  | "bad-service"
  | "guard-mismatch"
  | "guard-change"
  | "wrong-secret"
  | "too-many-services"
  | "too-many-servers"
  | "too-many-peers"
  | "too-many-moves"
  | "deposed"
  | "busy"
  | "bad-key"
  | "bad-request"
  | "key-unowned"
  | "key-moving"
  | "key-minted"
  | "already-there"
  | "server-unknown"
  | "server-draining"
  | "server-ambiguous"
  | "no-server";

/** What, where and why, and what to do. */
export interface ProblemText {
  readonly code: ProblemCode;
  readonly message: string;
  readonly requestId?: number;
  readonly retryAfterMs?: number;
  readonly fatal?: boolean;
}

export const problemFrame = (problem: ProblemText): FrameBodyInit => ({
  case: "problem",
  value: {
    code: problem.code,
    message: problem.message,
    fatal: problem.fatal ?? false,
    requestId: problem.requestId ?? 0,
    retryAfterMs: problem.retryAfterMs ?? 0,
  },
});
