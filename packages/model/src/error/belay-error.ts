import { errorTable, type ErrorCode } from "./error-table.ts";
import type { ErrorFacts } from "./reason-table.ts";

/** What a person or program needs beside the message; JSON only. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null>>;

export interface BelayErrorOptions {
  readonly details?: ErrorDetails;
  readonly cause?: unknown;
}

/**
 * The one error that Belay throws for expected faults. `message` says what, where and why; what to do
 * is in the table (`facts.hint`).
 */
export class BelayError extends Error {
  override readonly name = "BelayError";
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, options: BelayErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
  }

  /** HTTP and gRPC status, exit code, hint and whose fault it is. */
  get facts(): ErrorFacts {
    return errorTable[this.code];
  }
}

/** Anything thrown, as a BelayError: what is not one already becomes `internal` with its cause. */
export function toBelayError(thrown: unknown): BelayError {
  if (thrown instanceof BelayError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new BelayError("internal", message, { cause: thrown });
}
