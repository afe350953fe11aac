/** Bound on the rate error of each clock (ρ). */
export const CLOCK_RATE_ERROR = 0.01;

/**
 * W(x): how long the other side waits for a promise of `promiseMs` to end, both clocks off by ρ in
 * the worst direction, and `marginMs` between a clock read and the act that relies on it (H17).
 */
export function waitMs(
  promiseMs: number,
  marginMs: number,
  rateError: number = CLOCK_RATE_ERROR,
): number {
  return (promiseMs * (1 + rateError)) / (1 - rateError) + marginMs;
}
