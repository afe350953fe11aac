import { homedir } from "node:os";
import { join, resolve } from "node:path";

const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
const target =
  process.env["CARGO_TARGET_DIR"] ?? resolve(import.meta.dirname, "../../../native/target");

/** The Envoy that the set-up installed, or the one that BELAY_ENVOY names. */
export const envoyBinary: string =
  process.env["BELAY_ENVOY"] ?? join(cache, "belay/envoy/1.40.0/envoy");

/** Envoy's module, as cargo builds it, or the one that BELAY_MODULE names. */
export const moduleFile: string =
  process.env["BELAY_MODULE"] ?? join(target, "release/libbelay.so");
