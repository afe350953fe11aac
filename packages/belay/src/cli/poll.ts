import { setTimeout as delay } from "node:timers/promises";

const POLL_MS = 100;

/** Asks `probe` until it answers something, at most for `timeoutMs`; then undefined. */
export async function poll<T>(
  timeoutMs: number,
  probe: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const deadlineMs = performance.now() + timeoutMs;
  const answer = await probe();
  if (answer !== undefined) return answer;
  const leftMs = deadlineMs - performance.now();
  if (leftMs <= 0) return undefined;
  await delay(Math.min(POLL_MS, leftMs));
  return poll(deadlineMs - performance.now(), probe);
}
