import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { test } from "node:test";

const native = resolve(import.meta.dirname, "../../native");

function cargo(...args: string[]): void {
  const result = spawnSync("cargo", args, { cwd: native, encoding: "utf8" });
  assert.equal(result.status, 0, `cargo ${args.join(" ")}\n${result.stdout}\n${result.stderr}`);
}

test("rustfmt is clean", () => {
  cargo("fmt", "--all", "--check");
});

test("clippy is clean, pedantic included", () => {
  cargo("clippy", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings");
});
