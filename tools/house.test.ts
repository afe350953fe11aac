import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { test } from "node:test";

const root = resolve(import.meta.dirname, "..");
const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter((path) => path !== "" && existsSync(join(root, path)));
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const isGenerated = (path: string): boolean => path.includes("/gen/");
const source = files.filter((path) => /\.(ts|mjs|rs|go)$/.test(path) && !isGenerated(path));

function offenders(paths: string[], bad: (path: string, text: string) => boolean): string[] {
  return paths.filter((path) => bad(path, read(path)));
}

function codeLines(text: string): number {
  return text.split("\n").filter((line) => !/^\s*(\/\/.*|\/?\*.*)?$/.test(line)).length;
}

test("STYLE 1: files are named by their noun, in kebab-case", () => {
  const vague = /^(utils?|helpers?|common|types|misc|shared|.*-manager|.*-impl)\.(ts|mjs|rs)$/;
  assert.deepEqual(
    source.filter((path) => vague.test(basename(path))),
    [],
  );
  const typescript = source.filter((path) => /\.(ts|mjs)$/.test(path));
  assert.deepEqual(
    typescript.filter((path) => !/^\.?[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*$/.test(basename(path))),
    [],
  );
});

test("STYLE 2: no file has more than 400 lines of code", () => {
  assert.deepEqual(
    offenders(source, (_, text) => codeLines(text) > 400),
    [],
  );
});

test("STYLE 16: nothing switches a check off", () => {
  const off =
    /oxlint-disable|eslint-disable|@ts-ignore|@ts-expect-error|@ts-nocheck|#\[rustfmt::skip\]/;
  const self = "tools/house.test.ts";
  assert.deepEqual(
    offenders(source, (path, text) => path !== self && off.test(text)),
    [],
  );
});

test("STYLE 18: tests neither skip nor sleep", () => {
  const tests = source.filter(
    (path) => path.endsWith(".test.ts") && path !== "tools/house.test.ts",
  );
  const lazy = /\.(skip|only|todo)\(|\bawait (sleep|delay|setTimeout)\(|timers\/promises/;
  assert.deepEqual(
    offenders(tests, (_, text) => lazy.test(text)),
    [],
  );
});

test("STYLE 21: unsafe Rust stands in the ABI and system-call files only", () => {
  const allowed = /^native\/(filter\/src\/abi(\/.*)?(\.rs)?|exec\/src\/inherited\.rs$)/;
  const rust = source.filter((path) => path.endsWith(".rs") && !allowed.test(path));
  assert.deepEqual(
    offenders(rust, (_, text) => /\bunsafe\s*(\{|fn|impl|extern)/.test(text)),
    [],
  );
});

test("no committed lock file records where a package was downloaded", () => {
  const locks = files.filter((path) => path.endsWith("package-lock.json"));
  assert.ok(locks.length > 0);
  assert.deepEqual(
    offenders(locks, (_, text) => /"resolved": "https?:/.test(text)),
    [],
  );
});

test("dependency versions are exact", () => {
  const loose: string[] = [];
  for (const path of files.filter((name) => basename(name) === "package.json")) {
    const manifest = JSON.parse(read(path)) as Record<string, Record<string, string> | undefined>;
    for (const kind of ["dependencies", "devDependencies", "optionalDependencies"]) {
      for (const [name, version] of Object.entries(manifest[kind] ?? {})) {
        if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) loose.push(`${path}: ${name} ${version}`);
      }
    }
  }
  assert.deepEqual(loose, []);
});

test("docs/dependencies.md gives a reason for each dependency", () => {
  const reasons = read("docs/dependencies.md");
  const missing: string[] = [];
  for (const path of files.filter((name) => basename(name) === "package.json")) {
    const manifest = JSON.parse(read(path)) as Record<string, Record<string, string> | undefined>;
    for (const kind of ["dependencies", "devDependencies", "optionalDependencies"]) {
      for (const name of Object.keys(manifest[kind] ?? {})) {
        const ours = name.startsWith("@belay/") || name === "belay";
        if (!ours && !reasons.includes(`\`${name}\``)) missing.push(name);
      }
    }
  }
  for (const path of files.filter((name) => /^native\/.*Cargo\.toml$/.test(name))) {
    for (const [, name] of read(path).matchAll(
      /^([a-z0-9_-]+)\s*=\s*(?:"=|\{[^}]*version = "=)/gm,
    )) {
      if (name !== undefined && !reasons.includes(`\`${name}\``)) missing.push(name);
    }
  }
  assert.deepEqual([...new Set(missing)], []);
});

test("links between documents lead somewhere", () => {
  const broken: string[] = [];
  for (const path of files.filter(
    (name) => name.endsWith(".md") && !name.startsWith(".changeset"),
  )) {
    for (const [, target] of read(path).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (target === undefined || /^[a-z]+:/.test(target)) continue;
      if (!existsSync(join(root, dirname(path), target))) broken.push(`${path}: ${target}`);
    }
  }
  assert.deepEqual(broken, []);
});

test("each proof in docs/requirements.md is there", () => {
  const proofs = [...read("docs/requirements.md").matchAll(/`([^` ]+\/[^` ]+)`/g)];
  assert.ok(proofs.length > 10);
  assert.deepEqual(
    proofs.map(([, path = ""]) => path).filter((path) => !existsSync(join(root, path))),
    [],
  );
});

test("README is shorter than 150 lines, ARCHITECTURE fits a page", () => {
  assert.ok(read("README.md").split("\n").length < 150);
  assert.ok(read("ARCHITECTURE.md").split("\n").length <= 110);
});
