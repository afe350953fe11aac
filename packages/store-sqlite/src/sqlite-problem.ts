import { BelayError } from "@belay/model";

const BUSY = 5;
const LOCKED = 6;
const READ_ONLY = 8;
const CORRUPT = 11;
const FULL = 13;
const CANNOT_OPEN = 14;
const NOT_A_DATABASE = 26;
/** The low byte is the code, the rest says more. */
const PRIMARY_MASK = 0xff;

/** SQLite's result code; undefined if `thrown` does not come from SQLite. */
function sqliteCode(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !("errcode" in thrown)) return undefined;
  return typeof thrown.errcode === "number" ? thrown.errcode & PRIMARY_MASK : undefined;
}

/** What went wrong with the store `file`, and what to do about it. */
export function toStoreError(thrown: unknown, file: string): BelayError {
  if (thrown instanceof BelayError) return thrown;
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  const options = { cause: thrown };
  const code = sqliteCode(thrown) ?? 0;
  if (code === BUSY || code === LOCKED) {
    const message = `${file} is in use by another process: stop the other coordinator, or choose another data directory`;
    return new BelayError("store-locked", message, options);
  }
  if (code === FULL) {
    const message = `no room left to write ${file}: make room on its disk; nothing that was committed is lost`;
    return new BelayError("disk-full", message, options);
  }
  if (code === CORRUPT || code === NOT_A_DATABASE) {
    const message = `${file} is damaged or is not a store of Belay (${reason}): put a backup in its place, or move it away to begin anew, which gives every key a new owner`;
    return new BelayError("store-failed", message, options);
  }
  if (code === READ_ONLY || code === CANNOT_OPEN) {
    const message = `${file} cannot be opened for writing (${reason}): see that the directory belongs to this user and is not mounted read-only`;
    return new BelayError("store-failed", message, options);
  }
  return new BelayError("store-failed", `${file}: ${reason}`, options);
}
