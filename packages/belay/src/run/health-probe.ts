import { connect } from "node:net";
import { formatSocketAddress, type SocketAddress } from "../machine/socket-address.ts";
import type { HealthCheck } from "./run-settings.ts";

/** One health check of a server: true if it is well. Never rejects. */
export async function probeHealth(
  check: HealthCheck,
  at: SocketAddress,
  timeoutMs: number,
): Promise<boolean> {
  if (check.kind === "tcp") return acceptsTcp(at, timeoutMs);
  try {
    const response = await fetch(`http://${formatSocketAddress(at)}${check.path}`, {
      redirect: "manual",
      headers: { connection: "close" },
      signal: AbortSignal.timeout(timeoutMs),
    });
    await response.body?.cancel();
    return response.status >= 200 && response.status < 300;
  } catch {
    return false;
  }
}

async function acceptsTcp(at: SocketAddress, timeoutMs: number): Promise<boolean> {
  const socket = connect({ host: at.host, port: at.port });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once("connect", () => resolve(true));
  socket.once("error", () => resolve(false));
  socket.setTimeout(timeoutMs, () => resolve(false));
  const accepted = await promise;
  socket.destroy();
  return accepted;
}
