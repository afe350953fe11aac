import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { BelayError } from "@belay/model";
import {
  ENVOY_VERSION,
  findEnvoy,
  findExec,
  findModule,
  requireEnvoyVersion,
} from "../proxy/envoy-files.ts";
import { type CheckResult, failed, ok } from "./check-result.ts";

const VALIDATE_MS_MAX = 30_000;
const WORDS_MAX = 300;

/** Envoy: there, and of the right version. */
export async function checkEnvoy(named: string | undefined): Promise<CheckResult> {
  try {
    const envoy = findEnvoy(named);
    await requireEnvoyVersion(envoy);
    return ok("envoy", `${ENVOY_VERSION} (${envoy})`);
  } catch (error) {
    return fromError("envoy", error);
  }
}

/** The module: Envoy itself loads it, in `--mode validate`. */
export async function checkModule(
  envoyNamed: string | undefined,
  moduleNamed: string | undefined,
  bootstrap: () => string,
): Promise<CheckResult> {
  let folder: string | undefined;
  try {
    const envoy = findEnvoy(envoyNamed);
    const module = findModule(moduleNamed);
    folder = mkdtempSync(join(tmpdir(), "belay-doctor-"));
    const file = join(folder, "bootstrap.json");
    writeFileSync(file, bootstrap());
    const args = ["--mode", "validate", "-c", file, "--disable-hot-restart", "-l", "error"];
    await promisify(execFile)(envoy, args, {
      timeout: VALIDATE_MS_MAX,
      env: { ...process.env, ENVOY_DYNAMIC_MODULES_SEARCH_PATH: dirname(module) },
    });
    return ok("module", `Envoy loads ${module}`);
  } catch (error) {
    return fromError("module", error);
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** belay-exec, which `belay run` needs. */
export async function checkExec(): Promise<CheckResult> {
  try {
    return ok("belay-exec", `${findExec()} (runs the commands of \`belay run\`)`);
  } catch (error) {
    return fromError("belay-exec", error);
  }
}

function fromError(name: string, error: unknown): CheckResult {
  if (error instanceof BelayError) return failed(name, error.message, error.facts.hint);
  const words = error instanceof Error && "stderr" in error ? String(error.stderr) : String(error);
  return failed(
    name,
    words.trim().slice(-WORDS_MAX),
    "Envoy refuses the module: build it anew with `npm start`; its own words are above.",
  );
}
