import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { freePorts } from "@belay/testkit";
import { CoreUnderTest } from "../control-plane/core-under-test.ts";
import { belay, type Ended } from "./belay-program.ts";

describe("belay check and apply", () => {
  let core: CoreUnderTest;
  const folder = mkdtempSync(join(tmpdir(), "belay-check-"));

  const write = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  };
  const run = (...args: string[]): Promise<Ended> => belay(args, { BELAY_API: core.url });

  before(async () => {
    const [coordinatorPort = 1] = await freePorts(1);
    const files = { "world.yaml": "service: world\nkey: none\n" };
    core = await CoreUnderTest.start({ coordinatorPort, files });
  });
  after(async () => {
    await core?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("what a served service has, both refuse in the same words", async () => {
    const file = write("chat.yaml", "service: chat\nkey: none\n");
    const line = `${file}:1:1: service: it takes every host ("*"), and so does world`;
    for (const { code, output } of [await run("check", file), await run("apply", file)]) {
      assert.equal(code, 3, output);
      assert.ok(output.includes(line), output);
    }
    // The service itself is no obstacle to its new file.
    const again = write("world.yaml", "service: world\nkey: { header: x }\n");
    assert.equal((await run("check", again)).code, 0);
  });

  test("what one file takes from another is known before the first is written", async () => {
    const host = (name: string): string => `service: ${name}\nhosts: [x.test]\nkey: none\n`;
    const [one, two] = [write("one.yaml", host("one")), write("two.yaml", host("two"))];
    const line = `${two}:2:9: hosts[0]: the host x.test belongs to one (${one}:2)`;
    for (const { code, output } of [await run("check", one, two), await run("apply", one, two)]) {
      assert.equal(code, 3, output);
      assert.ok(output.includes(line), output);
    }
    assert.deepEqual(readdirSync(core.services), ["world.yaml"]);
  });

  test("a problem is told as file:line:column: member: what", async () => {
    const file = write("bad.yaml", "service: bad\nkey: none\nownership: { lease: soon }\n");
    const { code, output } = await run("check", file);
    assert.equal(code, 3);
    assert.ok(output.startsWith(`${file}:3:14: ownership.lease: `), output);
  });

  test("a file that is not there, is no file or is too large is said in words", async () => {
    const none = await run("check", "nofile.yaml");
    assert.equal(none.code, 2);
    assert.equal(none.output, "belay: cannot read nofile.yaml: no such file or directory\n");
    const dir = await run("check", folder);
    assert.equal(dir.output, `belay: cannot read ${folder}: illegal operation on a directory\n`);
    const large = await run("check", write("large.yaml", "#".repeat(300_000)));
    assert.equal(large.code, 3);
    assert.match(large.output, /large\.yaml:1:1: the file is larger than 256 KiB/);
    assert.equal((await run("apply", "/dev/zero")).code, 3);
  });
});
