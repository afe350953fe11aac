import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from "node:fs";
import { createBootClock } from "@belay/protocol";
import { setTimeout as delay } from "node:timers/promises";
import { dirname, resolve } from "node:path";
import { describeSystemError } from "../machine/system-error.ts";
import { type CheckResult, failed, ok, warning } from "./check-result.ts";

const NODE_MAJOR_MIN = 24;
const FILES_MIN = 4096;
const CLOCK_SAMPLE_MS = 200;
const CLOCK_RATE_ERROR_MAX = 0.05;
const FREE_MIB_MIN = 200;
const MIB = 1024 * 1024;

/** Node itself. */
export function checkNode(): CheckResult {
  const { node } = process.versions;
  return Number(node.split(".")[0]) >= NODE_MAJOR_MIN
    ? ok("node", `${node} (${process.execPath})`)
    : failed("node", node, "Start it by `npx belay`, which takes the Node 24 of the packages.");
}

/** Rights on the data folder, and room on its disk. */
export function checkDataFolder(path: string): CheckResult {
  const folder = resolve(path);
  const existing = existsSync(folder) ? folder : dirname(folder);
  try {
    accessSync(existing, constants.W_OK | constants.X_OK);
  } catch (cause) {
    const why = `${existing}: ${describeSystemError(cause)}`;
    return failed("data folder", why, "Choose another with BELAY_DATA or --data.");
  }
  const { bavail, bsize } = statfsSync(existing);
  const freeMib = Math.floor((bavail * bsize) / MIB);
  if (freeMib < FREE_MIB_MIN) {
    return failed("data folder", `${folder}: ${freeMib} MiB free`, "Make room on that disk.");
  }
  if (existing !== folder)
    return ok("data folder", `${folder}: not there yet, the first start makes it`);
  const mode = statSync(folder).mode & 0o777;
  if ((mode & 0o077) === 0) return ok("data folder", `${folder}, ${freeMib} MiB free`);
  return warning(
    "data folder",
    `${folder} is open to others (mode ${mode.toString(8)})`,
    `\`chmod 700 ${folder}\`; the next start does it too.`,
  );
}

/** That the clock of leases runs evenly: a machine that stalls cannot keep them. */
export async function checkClock(): Promise<CheckResult> {
  const clock = createBootClock();
  const [bootMs, wallMs] = [clock.now(), Date.now()];
  await delay(CLOCK_SAMPLE_MS);
  const [bootPassedMs, wallPassedMs] = [clock.now() - bootMs, Date.now() - wallMs];
  const error = Math.abs(bootPassedMs - wallPassedMs) / Math.max(1, wallPassedMs);
  const found = `a wait of ${CLOCK_SAMPLE_MS} ms took ${bootPassedMs.toFixed(0)} ms by the clock of leases, ${wallPassedMs} ms by the wall clock`;
  if (error < CLOCK_RATE_ERROR_MAX && bootPassedMs < CLOCK_SAMPLE_MS * 2)
    return ok("clock", `steady: ${found}`);
  return warning(
    "clock",
    found,
    "The clock jumps or the machine stalls: leases are lost by stalls longer than a third of them.",
  );
}

/** The limit of open files, which bounds connections. */
export function checkFileLimit(): CheckResult {
  if (!existsSync("/proc/self/limits")) return warning("file limit", "unknown", "");
  const line = /^Max open files\s+(\S+)\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8"));
  const [soft = "", hard = ""] = line?.slice(1) ?? [];
  if (soft === "unlimited" || Number(soft) >= FILES_MIN)
    return ok("file limit", `${soft} open files`);
  return warning(
    "file limit",
    `${soft} open files (you may set up to ${hard})`,
    `Every connection is a file, and an edge has two per client: \`ulimit -n ${hard}\` before the start.`,
  );
}
