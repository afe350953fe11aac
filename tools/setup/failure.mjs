/** A set-up step that cannot go on: what is wrong, then what to do, a line each. */
export class SetupFailure extends Error {
  /**
   * @param {string} what
   * @param {readonly string[]} advice
   */
  constructor(what, advice) {
    super(what);
    this.name = "SetupFailure";
    this.advice = advice;
  }
}

const NETWORK =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|network|Could ?n.t resolve|failed to download|Failed to establish|Temporary failure in name resolution|Max retries exceeded|spurious network error|download of config\.json failed/i;
const DISK_FULL = /ENOSPC|No space left on device|disk quota|EDQUOT/i;
const RIGHTS = /EACCES|EROFS|Permission denied|Read-only file system/i;

/**
 * Advice for the output of a failed tool, or for an error of ours: the tool's own words are kept
 * by the caller, this says what they mean.
 * @param {string} text
 * @returns {string[]}
 */
export function adviceFor(text) {
  const advice = [];
  if (DISK_FULL.test(text)) {
    advice.push(
      "The disk is full: free about 3 GB (see `df -h`), or point XDG_CACHE_HOME and CARGO_TARGET_DIR to a disk with room, and start again.",
    );
  } else if (NETWORK.test(text)) {
    advice.push(
      "Check your network and proxy (HTTPS_PROXY, npm config get registry, pip config list), and start again: what is done is kept.",
    );
  } else if (RIGHTS.test(text)) {
    advice.push("A folder is not writable for you: see the path above, and `ls -ld` it.");
  }
  return advice;
}

/**
 * Prints a failure of a step and says whether it was one that the set-up knows.
 * @param {unknown} error
 */
export function printFailure(error) {
  if (error instanceof SetupFailure) {
    console.error(`\nbelay: ${error.message}`);
    for (const line of error.advice) console.error(`  → ${line}`);
    return;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  console.error(`\nbelay: set-up failed: ${text}`);
  for (const line of adviceFor(text)) console.error(`  → ${line}`);
}
