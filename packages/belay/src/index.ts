export { createProgram } from "./cli/program.ts";
export { readVersion } from "./cli/version.ts";
