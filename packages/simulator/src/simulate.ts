import { waitMs } from "@belay/ownership";
import { Violation } from "./checks.ts";
import { planFaults } from "./faults.ts";
import { WORLD_DEFAULTS, type WorldOptions } from "./options.ts";
import type { Plant } from "./plant.ts";
import { World } from "./world.ts";

const REQUEST_EVERY_MS = 15;
const MOVE_EVERY_MS = 400;
/** A world that does not come to its end is a fault of the simulator. */
const STEPS_MAX = 2_000_000;

export interface SimulationResult {
  readonly seed: number;
  readonly violation: Violation | undefined;
  readonly steps: number;
  readonly answers: number;
  readonly notes: readonly string[];
}

export type SimulationInput = Pick<WorldOptions, "seed" | "guarded"> & Partial<WorldOptions>;

/** Runs one seeded world: the same input gives the same run. Anything but a Violation is thrown. */
export function simulate(input: SimulationInput, plant: Plant = {}): SimulationResult {
  const options: WorldOptions = { ...WORLD_DEFAULTS, ...input };
  const world = new World(options, plant);
  const violation = run(world);
  const { steps, answers, notes } = world;
  return { seed: options.seed, violation, steps, answers, notes };
}

function run(world: World): Violation | undefined {
  const { durationMs } = world.options;
  try {
    planFaults(world, durationMs);
    planWorkload(world);
    advance(world, durationMs);
    heal(world);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof Violation) return thrown;
    throw thrown;
  }
}

function planWorkload(world: World): void {
  const { random, timeline } = world;
  const request = (): void => {
    world.request();
    timeline.plan(timeline.now + random.next() * 2 * REQUEST_EVERY_MS, request);
  };
  const move = (): void => {
    world.move();
    timeline.plan(timeline.now + random.next() * 2 * MOVE_EVERY_MS, move);
  };
  timeline.plan(0, request);
  timeline.plan(0, move);
}

function advance(world: World, until: number): void {
  while (world.timeline.step(until)) {
    if (world.steps > STEPS_MAX) throw new RangeError(`more than ${STEPS_MAX} steps`);
  }
}

/** Faults are over: within the restarts, the longest pause and I11's bound every key is served. */
function heal(world: World): void {
  const { leaseMs, marginMs, rateError, durationMs } = world.options;
  const settledAt = durationMs + 2 * leaseMs + 1000;
  advance(world, settledAt);
  const bound = waitMs(leaseMs, marginMs, rateError) + 1000;
  advance(world, settledAt + bound * 2);
  world.checkServed(settledAt + bound);
}
