import type { IncomingHttpHeaders } from "node:http";
import { decodeKey } from "@belay/model";

/** What the edge says about a request: for which key, and which life of the server it means. */
export interface RequestIdentity {
  /** Undefined: a keyless request, admitted by incarnation alone. */
  readonly key: string | undefined;
  /** The owner's epoch as the edge believes it; 0n if it does not know one. */
  readonly epoch: bigint;
  readonly incarnation: bigint;
}

const U64_MAX = 2n ** 64n - 1n;

/** A u64 in decimal digits; undefined for anything else. */
function parseRevision(text: string | string[] | undefined): bigint | undefined {
  if (typeof text !== "string" || !/^\d{1,20}$/.test(text)) return undefined;
  const value = BigInt(text);
  return value <= U64_MAX ? value : undefined;
}

/** Reads `x-belay-*`; undefined for a request that no edge sent (or with broken values). */
export function parseIdentity(headers: IncomingHttpHeaders): RequestIdentity | undefined {
  const incarnation = parseRevision(headers["x-belay-incarnation"]);
  if (incarnation === undefined) return undefined;
  const keyText = headers["x-belay-key"];
  const epochText = headers["x-belay-epoch"];
  const epoch = epochText === undefined ? 0n : parseRevision(epochText);
  if (epoch === undefined || Array.isArray(keyText)) return undefined;
  if (keyText === undefined) return { key: undefined, epoch, incarnation };
  const key = decodeKey(keyText);
  return key === undefined ? undefined : { key, epoch, incarnation };
}
