export { Violation } from "./checks.ts";
export { WORLD_DEFAULTS } from "./options.ts";
export type { WorldOptions } from "./options.ts";
export type { Plant, Wire } from "./plant.ts";
export { simulate } from "./simulate.ts";
export type { SimulationInput, SimulationResult } from "./simulate.ts";
