import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";

// Plants violations in a small tree with our own configuration: a rule that nothing can break is no rule.
const root = resolve(import.meta.dirname, "..");
let tree = "";

function plant(files: Record<string, string>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(tree, dirname(path)), { recursive: true });
    writeFileSync(join(tree, path), text);
  }
}

function run(tool: string, args: string[]): { status: number | null; output: string } {
  const bin = join(root, "node_modules/.bin");
  const { status, stdout, stderr } = spawnSync(join(bin, tool), args, {
    cwd: tree,
    encoding: "utf8",
    env: { ...process.env, PATH: `${bin}:${process.env["PATH"]}` },
  });
  return { status, output: stdout + stderr };
}

before(() => {
  tree = mkdtempSync(join(tmpdir(), "belay-layers-"));
  for (const name of [
    ".oxlintrc.json",
    ".dependency-cruiser.mjs",
    "tsconfig.base.json",
    "package.json",
  ]) {
    cpSync(join(root, name), join(tree, name));
  }
  plant({
    "tsconfig.json": `{"extends":"./tsconfig.base.json","compilerOptions":{"noEmit":true},"include":["packages/*/src"]}`,
    "packages/model/src/index.ts": "export const leaseMs = 1;\n",
    "packages/coordinator/src/index.ts": `import { leaseMs } from "@belay/model";\nexport const twice = leaseMs * 2;\n`,
  });
  mkdirSync(join(tree, "node_modules/@belay"), { recursive: true });
  for (const name of ["model", "coordinator"]) {
    plant({
      [`packages/${name}/package.json`]: JSON.stringify({
        name: `@belay/${name}`,
        type: "module",
        exports: { ".": { "belay-source": "./src/index.ts", default: "./dist/index.js" } },
      }),
    });
    symlinkSync(join(tree, "packages", name), join(tree, "node_modules/@belay", name));
  }
  for (const name of ["@types", "undici-types", "oxlint-tsgolint", "@oxlint-tsgolint"]) {
    symlinkSync(join(root, "node_modules", name), join(tree, "node_modules", name));
  }
});

after(() => {
  rmSync(tree, { recursive: true });
});

test("a clean tree passes both tools", () => {
  const layers = run("depcruise", ["packages"]);
  assert.equal(layers.status, 0, layers.output);
  const lint = run("oxlint", ["packages"]);
  assert.equal(lint.status, 0, lint.output);
});

test("dependency-cruiser finds a layer breach and a cycle", () => {
  plant({
    "packages/model/src/breach.ts": `import { twice } from "@belay/coordinator";\nexport const four = twice * 2;\n`,
    "packages/model/src/a.ts": `import { b } from "./b.ts";\nexport const a = (): number => b();\n`,
    "packages/model/src/b.ts": `import { a } from "./a.ts";\nexport const b = (): number => a();\n`,
  });
  const { status, output } = run("depcruise", ["packages"]);
  assert.notEqual(status, 0);
  assert.match(output, /layer-model.*breach\.ts/);
  assert.match(output, /no-cycle/);
});

test("oxlint finds impurity, deep imports and floating promises", () => {
  plant({
    "packages/model/src/impure.ts": [
      `import { readFileSync } from "node:fs";`,
      `import { twice } from "../../coordinator/src/index.ts";`,
      `export const now = (): number => Date.now() + Math.random() + twice;`,
      `export const text = (): string => readFileSync("x", "utf8");`,
      `export function later(): void { setTimeout(() => {}, 1); console.log(process.pid); }`,
      `export async function wait(): Promise<void> {}`,
      `export function go(): void { wait(); }`,
      `export function which(kind: "a" | "b"): void { switch (kind) { case "a": break; } }`,
      "",
    ].join("\n"),
  });
  const { status, output } = run("oxlint", ["packages/model/src/impure.ts"]);
  assert.notEqual(status, 0);
  for (const sign of [
    /the core does no I\/O/,
    /import the package by name/,
    /'Date'/,
    /take a Random/,
    /'setTimeout'/,
    /'process'/,
    /no-console/,
    /no-floating-promises/,
    /switch-exhaustiveness-check/,
  ]) {
    assert.match(output, sign);
  }
});
