import { readdirSync, readFileSync } from "node:fs";

/** The processes, by pid and command, whose environment names `text`: what a run has left behind. */
export function leftovers(text: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        if (!readFileSync(`/proc/${pid}/environ`, "utf8").includes(text)) return [];
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return command === "" ? [] : [`${pid} ${command}`];
      } catch {
        return [];
      }
    });
}
