import { execFileSync, spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { cpus } from "node:os";
import { delimiter, join } from "node:path";
import { BelayError } from "@belay/model";
import { findEnvoy, findExec, findModule } from "../../packages/belay/src/proxy/envoy-files.ts";

const root = join(import.meta.dirname, "..");

/** Programs that the benches run. */
export interface Tools {
  readonly envoy: string;
  readonly upstream: string;
  readonly emptyModule: string;
  /** Undefined: not installed, and its variant is left out. */
  readonly haproxy: string | undefined;
}

/** Finds or builds all that is needed. Fails with `tool-missing` and says what to install. */
export function findTools(): Tools {
  requireTool("wrk", "the load generator; on Debian: apt-get install wrk");
  requireTool("taskset", "pins processes to cores; on Debian: apt-get install util-linux");
  requireTool("cargo", "builds bench/native");
  if (cpus().length < 2) {
    throw new BelayError(
      "tool-missing",
      "the benches need two cores: one for the proxy, one for the load",
    );
  }
  findExec();
  findModule(process.env["BELAY_MODULE"]);
  return {
    envoy: findEnvoy(process.env["BELAY_ENVOY"]),
    haproxy: which("haproxy"),
    ...buildNative(),
  };
}

function requireTool(name: string, why: string): void {
  if (which(name) === undefined)
    throw new BelayError("tool-missing", `there is no ${name}: ${why}`);
}

/** Debian keeps HAProxy where the PATH of people does not look. */
function which(name: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function buildNative(): Pick<Tools, "upstream" | "emptyModule"> {
  const folder = join(root, "native");
  const target = join(folder, "target");
  const { status, stderr } = spawnSync(
    "cargo",
    [
      "build",
      "--release",
      "--locked",
      "--manifest-path",
      join(folder, "Cargo.toml"),
      "--target-dir",
      target,
    ],
    { encoding: "utf8" },
  );
  if (status !== 0) {
    throw new BelayError(
      "tool-missing",
      `cargo could not build bench/native:\n${stderr.slice(-2000)}`,
    );
  }
  const release = join(target, "release");
  return {
    upstream: join(release, "bench-upstream"),
    emptyModule: join(release, "libbench_empty.so"),
  };
}

/** For the results: what was measured, on what. */
export function describeMachine(tools: Tools): Readonly<Record<string, unknown>> {
  const word = (command: string, ...args: string[]): string =>
    execFileSync(command, args, { encoding: "utf8" }).trim();
  return {
    cores: cpus().length,
    kernel: word("uname", "-srm"),
    envoy: word(tools.envoy, "--version").replace(/^.*version: /s, ""),
    node: process.version,
  };
}
