import { isIP } from "node:net";
import { BelayError } from "@belay/model";

export interface SocketAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Parses "ip:port" or "[ip6]:port". Names are refused: a proxy's module dials an address, and a
 * resolver that is away must not stop it.
 */
export function parseSocketAddress(text: string, flag: string): SocketAddress {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text);
  const given = match?.[1] ?? match?.[2] ?? "";
  const host = given === "localhost" ? "127.0.0.1" : given;
  const port = Number(match?.[3]);
  if (isIP(host) !== 0 && port >= 1 && port <= 65_535) return { host, port };
  throw new BelayError("usage", `${flag} must be an IP address and a port, 10.0.0.5:8801: ${text}`);
}

/** "127.0.0.1:80", "[::1]:80". */
export function formatSocketAddress({ host, port }: SocketAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
