import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { envoyBinary, moduleFile, until } from "@belay/testkit";
import { EdgeUnderTest } from "./edge-under-test.ts";
import { envoyConfig } from "./envoy-config.ts";
import { FakeServer } from "./fake-server.ts";

const route = { prefix: "/", config: { keys: [{ from: "path", template: "/s/{key}" }] } };

test("without a snapshot the edge opens after the longest wait, and answers 503 no-snapshot until it comes", async () => {
  const server = new FakeServer("a");
  const options = {
    cold: true,
    mute: true,
    maxWaitMs: 300,
    services: [{ name: "world", guarded: true, servers: [server], routes: [route] }],
  };
  const edge = await EdgeUnderTest.start(options);
  try {
    await edge.ready();
    const answer = await edge.ask("/s/p1/x");
    assert.deepEqual([answer.status, answer.headers["x-belay-reason"]], [503, "no-snapshot"]);
    assert.equal(answer.headers["retry-after"], "1");
    edge.coordinator.mute = false;
    edge.registerAll(options);
    edge.coordinator.cut();
    await until("the snapshot is there", async () => (await edge.ask("/s/p1/x")).status === 200);
  } finally {
    await edge.stop();
  }
});

test("a snapshot that is late keeps the listener closed until it is complete", async () => {
  const server = new FakeServer("a");
  const services = [{ name: "world", guarded: true, servers: [server], routes: [route] }];
  const edge = await EdgeUnderTest.start({ cold: true, mute: true, services });
  try {
    await until("the proxy is there", () => edge.coordinator.connected);
    await until(
      "the admin answers",
      async () => (await fetch(`http://127.0.0.1:${edge.adminPort}/ready`)).status === 503,
    );
    await assert.rejects(edge.ask("/s/p1/x"));
    edge.coordinator.mute = false;
    edge.coordinator.cut();
    await edge.ready();
  } finally {
    await edge.stop();
  }
});

test("a configuration that is wrong is refused with what, where and why; validation starts nothing", async () => {
  const folder = await mkdtemp(join(tmpdir(), "belay-gate-"));
  const file = join(folder, "envoy.json");
  const validate = async (
    config: Record<string, unknown>,
  ): Promise<{ code: number; text: string }> => {
    const good = envoyConfig({
      module: moduleFile,
      edgePort: 1,
      adminPort: 1,
      coordinator: "127.0.0.1:1",
      services: [{ name: "world", guarded: true, endpoints: [], routes: [{ ...route, config }] }],
    });
    await writeFile(file, JSON.stringify(good));
    const run = promisify(execFile)(envoyBinary, ["-c", file, "--mode", "validate", "-l", "error"]);
    return run.then(
      ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
      (error: { code: number; stdout: string; stderr: string }) => ({
        code: error.code,
        text: error.stdout + error.stderr,
      }),
    );
  };
  try {
    assert.equal((await validate(route.config)).code, 0);
    const bad = await validate({ keys: [{ from: "path", template: "/s/nothing" }] });
    assert.equal(bad.code, 1);
    assert.match(bad.text, /belay: configuration of a route of belay\.edge: keys\[0\]\.template/);
  } finally {
    await rm(folder, { recursive: true });
  }
});
