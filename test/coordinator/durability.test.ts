import assert from "node:assert/strict";
import test from "node:test";
import type { Resolved } from "@belay/protocol";
import { connect } from "@belay/server-sdk";
import { until } from "@belay/testkit";
import { CoordinatorUnderTest, quietLogger } from "./coordinator-under-test.ts";
import { ProxyUnderTest } from "./proxy-under-test.ts";

async function startServers(coordinator: CoordinatorUnderTest, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const belay = await connect({
      service: "world",
      address: `127.0.0.1:${20_001 + index}`,
      coordinator: coordinator.address,
      serverId: `world-${index}`,
      logger: quietLogger,
    });
    coordinator.onClose(async () => belay.close());
  }
}

test("T2 kill -9 in the middle of placements: no owner that was told is lost or changed", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({ leaseMs: 5000 });
  t.after(async () => coordinator.stop());
  await startServers(coordinator, 3);
  const proxy = new ProxyUnderTest(coordinator);
  await until("the feed is complete", () => proxy.complete);

  const told = new Map<string, Resolved>();
  for (let round = 0; round < 3; round += 1) {
    const before = told.size;
    const keys = Array.from({ length: 1000 }, (_, index) => `key-${round}-${index}`);
    const asking = Promise.allSettled(
      keys.map(async (key) => {
        const resolved = await proxy.resolveOnce(key);
        if (resolved.epoch > 0n) told.set(key, resolved);
      }),
    );
    await until("some are told, others not", () => told.size > before + 50);
    await coordinator.kill();
    await asking;
    await coordinator.restart();
    for (const [key, { epoch, incarnation }] of told) {
      const again = await proxy.resolve(key);
      assert.equal(again.incarnation, incarnation, key);
      assert.equal(again.epoch, epoch, key);
      assert.equal(again.placed, false, key);
    }
  }
});

test("A1 the same new key asked by two edges at once has one owner", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({});
  t.after(async () => coordinator.stop());
  await startServers(coordinator, 3);
  const edges = [new ProxyUnderTest(coordinator, "a"), new ProxyUnderTest(coordinator, "b")];
  await until("the feeds are complete", () => edges.every((edge) => edge.complete));
  const keys = Array.from({ length: 200 }, (_, index) => `fresh-${index}`);
  await Promise.all(
    keys.map(async (key) => {
      const asked = edges.flatMap((edge) =>
        Array.from({ length: 7 }, async () => edge.resolve(key)),
      );
      const answers = await Promise.all(asked);
      const owners = new Set(answers.map(({ incarnation, epoch }) => `${incarnation}@${epoch}`));
      assert.equal(owners.size, 1, key);
    }),
  );
  assert.equal(await coordinator.metric("belay_coordinator_placements_total"), 200);
});

test("T5 a second coordinator on the same data is refused, and the first serves on", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({});
  t.after(async () => coordinator.stop());
  const { Child, runTypeScript } = await import("@belay/testkit");
  const script = new URL("coordinator-process.ts", import.meta.url).pathname;
  const second = new Child("second", [...runTypeScript, script, coordinator.dataDir, "0"]);
  assert.notEqual(await second.exited(), 0);
  assert.match(second.output, /store-locked/);
  const status = await coordinator.control.ask({ case: "status", value: {} });
  assert.equal(status.case, "status");
});
