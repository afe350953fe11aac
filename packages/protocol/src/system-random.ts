import { randomBytes, randomInt } from "node:crypto";
import type { Random } from "@belay/model";

const STEPS = 2 ** 47;

/** The operating system's randomness. */
export function createSystemRandom(): Random {
  return {
    next: () => randomInt(STEPS) / STEPS,
    bytes: (length) => new Uint8Array(randomBytes(length)),
  };
}
