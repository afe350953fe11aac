import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run, toolFailure } from "./command.mjs";
import { SetupFailure } from "./failure.mjs";
import { fingerprint, readStamp } from "./fingerprint.mjs";

const RUSTUP =
  "Install Rust: `curl https://sh.rustup.rs -sSf | sh`, or update it: `rustup update stable`.";
const CC =
  "Install a C compiler for linking: `apt-get install build-essential`, `dnf install gcc`.";

/**
 * The folder that cargo builds into.
 * @param {string} root
 * @param {NodeJS.ProcessEnv} env
 */
function targetFolder(root, env) {
  return env.CARGO_TARGET_DIR || join(root, "native/target");
}

/**
 * Builds Envoy's module and belay-exec, unless a stamp proves that the same sources were built.
 * @param {string} root
 * @param {NodeJS.ProcessEnv} env
 * @param {(detail: string) => void} say
 */
export async function buildNative(root, env, say) {
  const release = join(targetFolder(root, env), "release");
  const stamp = join(release, ".belay-stamp");
  const wanted = fingerprint(root, ["native", "proto"]);
  const built = () =>
    existsSync(join(release, "libbelay.so")) && existsSync(join(release, "belay-exec"));
  if (built() && readStamp(stamp) === wanted) return "up to date";
  say("cargo build --release");
  const args = ["build", "--release", "--locked", "--manifest-path", "native/Cargo.toml"];
  const result = await run("cargo", args, { cwd: root, env, onLine: say });
  requireCargo(result);
  if (result.code !== 0) {
    throw toolFailure(
      "`cargo build` failed; cargo says:",
      result.output,
      cargoAdvice(result.output),
    );
  }
  if (!built()) {
    throw new SetupFailure(`cargo built no libbelay.so or no belay-exec in ${release}.`, [
      "A cargo setting of yours (build.target, ~/.cargo/config.toml) may send it elsewhere.",
    ]);
  }
  writeFileSync(stamp, `${wanted}\n`);
  return "built";
}

/**
 * Fails with a clear word if there was no cargo to run.
 * @param {{ code: number | null | "missing" }} result
 */
function requireCargo(result) {
  if (result.code !== "missing") return;
  throw new SetupFailure("cargo is missing; Envoy's module is written in Rust.", [RUSTUP]);
}

/**
 * What cargo's words mean, where we know.
 * @param {string} output
 */
function cargoAdvice(output) {
  if (/linker `?\w+`? not found|could not find `?cc/i.test(output)) return [CC];
  if (/requires rustc|is not supported by|edition2024|lock file version/i.test(output)) {
    return [`Your Rust is too old. ${RUSTUP}`];
  }
  return [];
}
