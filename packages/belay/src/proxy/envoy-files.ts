import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { BelayError } from "@belay/model";

export const ENVOY_VERSION = "1.40.0";
const VERSION_MS_MAX = 10_000;

/** The root of the checkout that this file is in. */
const ROOT = resolve(import.meta.dirname, "../../../..");

/** Folder that cargo builds releases into. */
const nativeRelease = (): string =>
  join(process.env["CARGO_TARGET_DIR"] ?? join(ROOT, "native/target"), "release");

/**
 * The Envoy to run: the one named, or the one that the set-up put into the cache. Fails with
 * `envoy-wrong` if it is not there.
 */
export function findEnvoy(named: string | undefined): string {
  if (named !== undefined) {
    if (existsSync(named)) return resolve(named);
    throw new BelayError(
      "envoy-wrong",
      `BELAY_ENVOY (or --envoy) names ${named}, which is not there`,
    );
  }
  const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  const path = join(cache, "belay/envoy", ENVOY_VERSION, "envoy");
  if (existsSync(path)) return path;
  throw new BelayError(
    "tool-missing",
    `there is no Envoy at ${path}: \`npm start\` puts it there, or BELAY_ENVOY names yours`,
  );
}

/** Asks Envoy for its version. Fails with `envoy-wrong` unless it is ENVOY_VERSION. */
export async function requireEnvoyVersion(envoy: string): Promise<void> {
  let text: string;
  try {
    const { stdout } = await promisify(execFile)(envoy, ["--version"], { timeout: VERSION_MS_MAX });
    text = stdout.trim();
  } catch (cause) {
    throw new BelayError("envoy-wrong", `${envoy} does not run: ${String(cause)}`, { cause });
  }
  if (text.includes(`/${ENVOY_VERSION}/`)) return;
  throw new BelayError(
    "envoy-wrong",
    `${envoy} is not Envoy ${ENVOY_VERSION}: ${text.split("\n", 1)[0]}`,
  );
}

/** libbelay.so: the one named, or the one that cargo built. Fails with `tool-missing`. */
export function findModule(named: string | undefined): string {
  return findNative(named, "libbelay.so", "BELAY_MODULE (or --module)");
}

/** belay-exec: what BELAY_EXEC names, or the one that cargo built. Fails with `tool-missing`. */
export function findExec(): string {
  return findNative(process.env["BELAY_EXEC"], "belay-exec", "BELAY_EXEC");
}

function findNative(named: string | undefined, file: string, setting: string): string {
  const path = resolve(named ?? join(nativeRelease(), file));
  if (existsSync(path)) return path;
  const why =
    named === undefined
      ? `there is no ${path}: \`npm start\` builds it (cargo build --release)`
      : `${setting} names ${path}, which is not there`;
  throw new BelayError("tool-missing", why);
}
