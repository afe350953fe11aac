import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { BelayError } from "@belay/model";

export interface AdmissionOptions {
  /** What the API listens on. */
  readonly host: string;
  readonly token: string | undefined;
}

export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** `127.0.0.1` of `127.0.0.1:8800`, `::1` of `[::1]:8800`; lower case. */
const nameOf = (host: string): string =>
  host
    .replace(/:\d+$/, "")
    .replace(/^\[(.*)\]$/, "$1")
    .toLowerCase();

/**
 * Who may call: no web page of another origin, nobody under a foreign name (DNS rebinding), and with a
 * token only who has it. Throws a BelayError. `open`: the route needs no token.
 */
export function admit(
  headers: IncomingHttpHeaders,
  { host: bound, token }: AdmissionOptions,
  open: boolean,
): void {
  const host = headers.host ?? "";
  const name = nameOf(host);
  // Who has the token is no page under a rebound name, and may know the API by any name.
  if (token === undefined && !isLoopback(name) && name !== bound) {
    const why = `the API is not known as "${host.slice(0, 100)}"`;
    throw new BelayError("foreign-host", why);
  }
  const { origin } = headers;
  const site = headers["sec-fetch-site"];
  const foreign = site === "cross-site" || site === "same-site";
  if (foreign || (origin !== undefined && !isSameOrigin(origin, host))) {
    const from = (origin ?? "another site").slice(0, 100);
    throw new BelayError("foreign-origin", `a page of ${from} may not call the API`);
  }
  if (token === undefined || open) return;
  const [, shown] = /^Bearer (.+)$/i.exec(headers.authorization ?? "") ?? [];
  if (shown === undefined) throw new BelayError("unauthorized", "the call has no token");
  if (!timingSafeEqual(digest(shown), digest(token))) {
    throw new BelayError("unauthorized", "the token is not the core's");
  }
}

const isSameOrigin = (origin: string, host: string): boolean =>
  URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
