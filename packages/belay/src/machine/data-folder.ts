import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { BelayError } from "@belay/model";
import { describeSystemError } from "./system-error.ts";

const OWNER_ONLY = 0o700;

/**
 * Makes the folder for state if it is not there, closes it for others (0700), and answers its full
 * path. Fails with a clear word if it cannot be written.
 */
export function openDataFolder(path: string): string {
  const folder = resolve(path);
  try {
    makeFolder(folder);
    const { mode } = statSync(folder);
    if ((mode & 0o077) !== 0) chmodSync(folder, OWNER_ONLY);
    // Rights alone say little: root has them where nothing can be made (/proc, a read-only disk).
    rmdirSync(mkdtempSync(join(folder, ".probe-")));
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOSPC") {
      throw new BelayError("disk-full", `no room for the data folder ${folder}`, { cause });
    }
    const why = `the data folder ${folder} cannot be used: ${describeSystemError(cause)}; BELAY_DATA or --data names another`;
    throw new BelayError("store-failed", why, { cause });
  }
  return folder;
}

/** With all folders above it. Node's `recursive` never returns where the system says ENOENT (/proc). */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, OWNER_ONLY);
  } catch (cause) {
    // Another process of `belay up` may have been quicker.
    if (!existsSync(folder)) throw cause;
  }
}
