export interface WorldOptions {
  readonly seed: number;
  /** Servers admit by themselves (G1), or run whatever comes. */
  readonly guarded: boolean;
  readonly servers: number;
  readonly proxies: number;
  readonly keys: number;
  /** With faults; then everything heals and I11 is looked for. */
  readonly durationMs: number;
  readonly leaseMs: number;
  readonly feedLeaseMs: number;
  readonly marginMs: number;
  readonly drainMs: number;
  readonly idleMs: number;
  /** ρ */
  readonly rateError: number;
  /** Longest time that a frame or request is under way; below margin. */
  readonly delayMsMax: number;
  /** Mean time between two faults. */
  readonly faultEveryMs: number;
}

export const WORLD_DEFAULTS: Omit<WorldOptions, "seed" | "guarded"> = {
  servers: 3,
  proxies: 2,
  keys: 5,
  durationMs: 20_000,
  leaseMs: 1500,
  feedLeaseMs: 1200,
  marginMs: 100,
  drainMs: 400,
  idleMs: 3000,
  rateError: 0.01,
  delayMsMax: 40,
  faultEveryMs: 500,
};
