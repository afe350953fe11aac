import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installEnvoy } from "./envoy.mjs";
import { buildNative } from "./native.mjs";
import { installNpmPackages } from "./npm-packages.mjs";
import { requirePlatform, thisMachine } from "./platform.mjs";
import { step } from "./progress.mjs";

/** The root of the checkout. */
export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");

/** The Node 24 that the npm packages bring. */
export const PINNED_NODE = join(ROOT, "node_modules/.bin/node");

/** Installs and builds all that Belay needs; each step is skipped when it is proven done. */
export async function setUp() {
  requirePlatform(thisMachine());
  await step("npm packages", (say) => installNpmPackages(ROOT, say));
  await step("Envoy 1.40.0", (say) => installEnvoy(ROOT, process.env, say));
  await step("native module", (say) => buildNative(ROOT, process.env, say));
}
