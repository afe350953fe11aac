import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const SKIPPED = new Set(["target", "node_modules", ".git", "corpus", "artifacts"]);

/**
 * SHA-256 over names and contents of all files below the given paths (those that exist), and the
 * machine's kind: the same only if nothing changed.
 * @param {string} root
 * @param {readonly string[]} paths
 */
export function fingerprint(root, paths) {
  const hash = createHash("sha256").update(`${process.platform}-${process.arch}\0`);
  const visit = (path) => {
    const full = join(root, path);
    if (!existsSync(full)) return;
    if (statSync(full).isDirectory()) {
      for (const name of readdirSync(full).toSorted()) {
        if (!SKIPPED.has(name)) visit(join(path, name));
      }
      return;
    }
    hash.update(`${path}\0`).update(readFileSync(full)).update("\0");
  };
  for (const path of paths) visit(path);
  return hash.digest("hex");
}

/**
 * What a stamp file says, undefined if there is none.
 * @param {string} path
 */
export function readStamp(path) {
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}
