import { getSystemErrorMessage } from "node:util";

/** What the system refused, in its words and without its codes: `no such file or directory`. */
export function describeSystemError(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const known = "errno" in cause && typeof cause.errno === "number" && cause.errno < 0;
  return known ? getSystemErrorMessage(Number(cause.errno)) : cause.message;
}
