import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "@belay/model";
import type { EnvoyAdmin } from "./envoy-admin.ts";

const POLL_MS = 50;

/**
 * Lets an edge end its requests: answers ask clients to come anew, then the listeners close, then
 * what still runs is waited for. Settles once nothing runs, or after `drainMs`.
 */
export async function drainEdge(admin: EnvoyAdmin, drainMs: number, logger: Logger): Promise<void> {
  const deadlineMs = performance.now() + drainMs;
  try {
    await admin.startDrain();
    await untilIdle(admin, deadlineMs, logger);
    await admin.closeListeners();
    await untilIdle(admin, deadlineMs, logger);
  } catch (error) {
    logger.warn(
      { why: String(error) },
      "Envoy's admin interface is away: it stops without a drain",
    );
  }
}

async function untilIdle(admin: EnvoyAdmin, deadlineMs: number, logger: Logger): Promise<void> {
  const active = await admin.countActiveRequests();
  if (active === 0) return;
  if (performance.now() > deadlineMs) {
    logger.warn({ active }, "the time to drain is over: what still runs is cut");
    return;
  }
  await delay(POLL_MS);
  await untilIdle(admin, deadlineMs, logger);
}
