import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";

/** Linux' USER_HZ, the unit of /proc/PID/stat, is 100 on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Core of the proxy that is measured; everything else gets the others. */
const PROXY_CORE = "0";
const LOAD_CORES = cpus().length > 2 ? `1-${cpus().length - 1}` : "1";

/** Fields of /proc/PID/stat after the command's name, which may hold anything. */
function readStat(pid: number): readonly string[] {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}

/** User and system time of a process since its start, in microseconds (resolution 10 ms). */
export function cpuMicros(pid: number): number {
  const fields = readStat(pid);
  return ((Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND) * 1e6;
}

/** Resident memory in bytes. */
export function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) * 1024;
}

/** The descendant of `ancestor` whose command is `command`. Fails if there is none. */
export function findDescendant(ancestor: number, command: string): number {
  const parents = new Map<number, number>();
  const found: number[] = [];
  for (const name of readdirSync("/proc").filter((it) => /^\d+$/.test(it))) {
    try {
      const pid = Number(name);
      parents.set(pid, Number(readStat(pid)[1]));
      if (readFileSync(`/proc/${name}/comm`, "utf8").trim() === command) found.push(pid);
    } catch {
      // It has ended since the folder was read.
    }
  }
  const isBelow = (pid: number | undefined, depth = 0): boolean =>
    pid !== undefined && depth < 16 && (pid === ancestor || isBelow(parents.get(pid), depth + 1));
  const pid = found.find((it) => isBelow(it));
  if (pid === undefined) throw new Error(`process ${ancestor} has no descendant ${command}`);
  return pid;
}

/** Pins all threads of a proxy to the core that no load runs on. */
export function pinProxy(pid: number): void {
  execFileSync("taskset", ["-a", "-c", "-p", PROXY_CORE, String(pid)], { stdio: "ignore" });
}

/** Keeps this process, and what it starts from now on, off the proxy's core, or gives all back. */
export function pinLoad(where: "off the proxy's core" | "anywhere"): void {
  const cores = where === "anywhere" ? `${PROXY_CORE},${LOAD_CORES}` : LOAD_CORES;
  execFileSync("taskset", ["-a", "-c", "-p", cores, String(process.pid)], { stdio: "ignore" });
}
