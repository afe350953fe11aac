import { existsSync, readFileSync } from "node:fs";
import { isLoopback } from "../machine/loopback.ts";
import { listListeningSockets } from "../machine/listening-sockets.ts";

const STATE_ESTABLISHED = "01";

/** Addresses beyond loopback on which something listens on `port`. */
export function exposedAddresses(port: number): string[] {
  return listListeningSockets()
    .filter((socket) => socket.port === port && !isLoopback(socket.address))
    .map((socket) => socket.address);
}

/** Connections that a local server on `port` has open. */
export function countConnections(port: number): number {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return ["/proc/net/tcp", "/proc/net/tcp6"]
    .filter((path) => existsSync(path))
    .flatMap((path) => readFileSync(path, "utf8").split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns[3] === STATE_ESTABLISHED && columns[1]?.endsWith(suffix)).length;
}
