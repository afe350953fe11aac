import { readFileSync } from "node:fs";
import { BelayError } from "@belay/model";
import { describeSystemError } from "./system-error.ts";

const TOKEN_CHARS_MIN = 16;

/** True for an address that only this machine reaches. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/**
 * The secret that peers must show, if there is one. A listener beyond loopback without one is
 * refused: `token-needed`.
 */
export function readToken(bind: string, tokenFile: string | undefined): string | undefined {
  if (tokenFile === undefined) {
    if (isLoopback(bind)) return undefined;
    const why = `--bind ${bind} is beyond loopback: anybody who reaches it could take keys over`;
    throw new BelayError("token-needed", why);
  }
  let token: string;
  try {
    token = readFileSync(tokenFile, "utf8").trim();
  } catch (cause) {
    throw new BelayError(
      "usage",
      `cannot read the token file ${tokenFile}: ${describeSystemError(cause)}`,
    );
  }
  if (token.length >= TOKEN_CHARS_MIN) return token;
  const why = `the token in ${tokenFile} has ${token.length} characters, ${TOKEN_CHARS_MIN} are needed`;
  throw new BelayError("token-needed", why);
}

/** The address under which this machine reaches what listens on `bind`. */
export function dialHost(bind: string): string {
  if (bind === "0.0.0.0") return "127.0.0.1";
  return bind === "::" ? "::1" : bind;
}
