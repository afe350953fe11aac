/** Asks `probe` every few ms until it answers something but undefined or false. Fails after `deadlineMs` with `what`. */
export async function until<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  deadlineMs = 15_000,
): Promise<T> {
  const end = performance.now() + deadlineMs;
  let last: unknown;
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (performance.now() > end) {
      throw new Error(`not within ${deadlineMs} ms: ${what}`, { cause: last });
    }
    await pause(20);
  }
}

/** Lets `ms` pass: for loads and measured outages, never in place of a condition. */
export async function pause(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms);
  await promise;
}
