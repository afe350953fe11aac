import { connect } from "node:net";
import type { HealthCheck } from "./run-settings.ts";

/** One health check of a server on this machine: true if it is well. Never rejects. */
export async function probeHealth(
  check: HealthCheck,
  port: number,
  timeoutMs: number,
): Promise<boolean> {
  if (check.kind === "tcp") return acceptsTcp(port, timeoutMs);
  try {
    const response = await fetch(`http://127.0.0.1:${port}${check.path}`, {
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

async function acceptsTcp(port: number, timeoutMs: number): Promise<boolean> {
  const socket = connect({ host: "127.0.0.1", port });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once("connect", () => resolve(true));
  socket.once("error", () => resolve(false));
  socket.setTimeout(timeoutMs, () => resolve(false));
  const accepted = await promise;
  socket.destroy();
  return accepted;
}
