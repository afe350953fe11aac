import { readFileSync } from "node:fs";

/** The version of this package. */
export function readVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const version = /"version": "([^"]+)"/.exec(text)?.[1];
  if (version === undefined) throw new Error("package.json has no version");
  return version;
}
