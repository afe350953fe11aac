import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { Child } from "@belay/testkit";
import { belay, root } from "./belay-program.ts";

const VERBS = [
  "up",
  "core",
  "proxy",
  "run",
  "check",
  "apply",
  "get",
  "get services",
  "get servers",
  "get shards",
  "get proxies",
  "owner",
  "explain",
  "move",
  "drain",
  "status",
  "doctor",
  "completion",
];

test("every verb has help with examples, and exits with 0", async () => {
  const helps = await Promise.all(VERBS.map(async (verb) => belay([...verb.split(" "), "--help"])));
  for (const [index, { code, output }] of helps.entries()) {
    assert.equal(code, 0, VERBS[index]);
    assert.match(output, new RegExp(`Usage: belay ${VERBS[index]}`));
    assert.match(output, /\nExamples:\n {2}\S/, VERBS[index]);
  }
});

test("help is without colours where it does not go to a terminal", async () => {
  const { output } = await belay(["--help"]);
  assert.ok(!output.includes("\u001B["));
});

test("the version is that of the package", async () => {
  const text = readFileSync(join(root, "packages/belay/package.json"), "utf8");
  const { code, output } = await belay(["--version"]);
  assert.equal(code, 0);
  assert.ok(text.includes(`"version": "${output.trim()}"`), output);
});

test("docs/reference/cli.md is what --help says", async () => {
  const script =
    "import { createProgram } from './packages/belay/src/cli/program.ts';" +
    "import { createReference } from './packages/belay/src/cli/reference.ts';" +
    "process.stdout.write(createReference(createProgram()));";
  const args = ["--conditions=belay-source", "--input-type=module", "-e", script];
  const fresh = execFileSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  const committed = readFileSync(join(root, "docs/reference/cli.md"), "utf8");
  const make = "node --conditions=belay-source packages/belay/src/cli/write-reference.ts";
  assert.equal(committed, fresh, `stale: run \`${make}\``);
});

test("completion for bash is a script that completes verbs, nouns and flags", async () => {
  const { output } = await belay(["completion", "bash"]);
  const complete = (words: readonly string[]): string => {
    const list = words.map((word) => `'${word}'`).join(" ");
    const script = `${output}\nCOMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _belay; echo "\${COMPREPLY[*]}"`;
    return execFileSync("bash", ["-c", script], { encoding: "utf8" }).trim();
  };
  assert.equal(complete(["belay", "st"]), "status");
  assert.equal(complete(["belay", "get", "pro"]), "proxies");
  assert.equal(complete(["belay", "move", "world", "ann", "--t"]), "--to --timeout --token-file");
  assert.equal(complete(["belay", "completion", "z"]), "zsh");
});

test("completion for zsh and fish names every verb", async () => {
  const scripts = await Promise.all(["zsh", "fish"].map(async (it) => belay(["completion", it])));
  for (const { code, output } of scripts) {
    assert.equal(code, 0);
    for (const verb of VERBS) assert.ok(output.includes(verb.split(" ").at(-1) ?? ""), verb);
  }
});

test("`npx belay` works in a plain shell", async () => {
  const env = { NODE_OPTIONS: undefined, npm_config_offline: "true" };
  const child = new Child("npx", ["npx", "--no", "belay", "--version"], { cwd: root, env });
  assert.equal(await child.exited(), 0, child.output);
  assert.match(child.output, /^\d+\.\d+\.\d+\n$/);
});
