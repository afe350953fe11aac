import { uptime } from "node:os";
import { performance } from "node:perf_hooks";
import type { Clock } from "@belay/model";

/** `os.uptime()` is cut to hundredths of a second; below this a difference is no suspend. */
const UPTIME_STEP_MS = 20;

/**
 * The clock of leases (S6). `performance.now()` gives the fractions of a millisecond but stands
 * still while the machine is suspended; `os.uptime()` (CLOCK_BOOTTIME) counts on in suspend but
 * only in steps of 10 ms. Each read takes both, and whatever uptime is ahead by more than
 * UPTIME_STEP_MS is added for good. Never goes back; the part of a suspend it can miss is below
 * UPTIME_STEP_MS + 10 ms, which the margin (≥ 200 ms) covers.
 */
export function createBootClock(): Clock {
  let offsetMs = uptime() * 1000 - performance.now();
  return {
    now() {
      const monotonicMs = performance.now();
      const bootMs = uptime() * 1000;
      if (bootMs - monotonicMs - offsetMs > UPTIME_STEP_MS) offsetMs = bootMs - monotonicMs;
      return monotonicMs + offsetMs;
    },
  };
}
