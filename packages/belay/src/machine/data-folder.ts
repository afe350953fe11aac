import { accessSync, chmodSync, constants, mkdirSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { BelayError } from "@belay/model";

const OWNER_ONLY = 0o700;

/**
 * Makes the folder for state if it is not there, closes it for others (0700), and answers its full
 * path. Fails with a clear word if it cannot be written.
 */
export function openDataFolder(path: string): string {
  const folder = resolve(path);
  try {
    mkdirSync(folder, { recursive: true, mode: OWNER_ONLY });
    const { mode } = statSync(folder);
    if ((mode & 0o077) !== 0) chmodSync(folder, OWNER_ONLY);
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    const text = String(cause);
    if (text.includes("ENOSPC")) {
      throw new BelayError("disk-full", `no room for the data folder ${folder}`, { cause });
    }
    const why = `the data folder ${folder} cannot be used: ${text}; BELAY_DATA or --data names another`;
    throw new BelayError("store-failed", why, { cause });
  }
  return folder;
}
