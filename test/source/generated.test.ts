import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { test } from "node:test";
import { runTypeScript } from "@belay/testkit";

// Generated code that is committed is what its sources generate today.
const root = resolve(import.meta.dirname, "../..");
const bin = resolve(root, "node_modules/.bin");

function run(program: string, args: readonly string[]): void {
  const env = { ...process.env, PATH: `${bin}:${process.env["PATH"]}` };
  const result = spawnSync(program, args, { cwd: root, encoding: "utf8", env });
  assert.equal(result.status, 0, `${result.stdout}\n${result.stderr}`);
}

const [node = "", ...flags] = runTypeScript;

test("the coordinator protocol's lint is clean and its TypeScript fresh", () => {
  run(resolve(bin, "buf"), ["lint", "proto"]);
  run(resolve(bin, "buf"), ["format", "--diff", "--exit-code", "proto"]);
  run(node, [...flags, "tools/gen-proto.ts", "--check"]);
});

test("the coordinator protocol's Rust is fresh", () => {
  const manifest = ["--manifest-path", "native/Cargo.toml", "--locked"];
  run("cargo", [
    "run",
    "--quiet",
    ...manifest,
    "-p",
    "belay-proto",
    "--example",
    "generate",
    "--",
    "--check",
  ]);
});

test("Envoy's types are fresh", () => {
  run(node, [...flags, "tools/gen-envoy-api.ts", "--check"]);
});
