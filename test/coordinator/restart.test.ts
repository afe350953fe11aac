import assert from "node:assert/strict";
import test from "node:test";
import { type CoordinatorConnection, type FrameBody, Role } from "@belay/protocol";
import { connect } from "@belay/server-sdk";
import { until } from "@belay/testkit";
import { CoordinatorUnderTest, quietLogger } from "./coordinator-under-test.ts";
import { ProxyUnderTest } from "./proxy-under-test.ts";

const LEASE_MS = 4000;
const secret = new Uint8Array(32).fill(9);

/** Registers an unguarded server the way an agent beside it does; answers its incarnation. */
async function registerPlain(connection: CoordinatorConnection, port: number): Promise<bigint> {
  await until("connected", () => connection.connected);
  const registered = await connection.request(
    (requestId) => ({
      case: "register",
      value: {
        requestId,
        service: "plain",
        serverId: `plain-${port}`,
        secret,
        address: `127.0.0.1:${port}`,
      },
    }),
    (body) => (body.case === "registered" ? body.value : undefined),
  );
  return registered.incarnation;
}

const holdLeftMs = async (coordinator: CoordinatorUnderTest): Promise<number> => {
  const welcome = await until("connected", () => coordinator.control.welcome);
  return Number(welcome.holdUntilMs);
};

test("S4 P6 after a clean stop nothing is waited for, after a kill what is owed is told", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({
    name: "plain",
    guarded: false,
    leaseMs: LEASE_MS,
  });
  t.after(async () => coordinator.stop());
  const startedAt = performance.now();
  const proxy = new ProxyUnderTest(coordinator);
  await until("the feed is complete", () => proxy.complete);
  const ended: FrameBody[] = [];
  const agent = coordinator.connect(Role.SERVER, "agent", {
    onFrame: (frame) => ended.push(frame),
  });
  const first = await registerPlain(agent, 20_001);
  const placed = await proxy.resolve("a", "plain");
  assert.equal(placed.incarnation, first);

  // As `belay up` stops: the edge says goodbye, the server leaves, the coordinator ends.
  proxy.connection.send({ case: "goodbye", value: {} });
  proxy.connection.close();
  agent.send({ case: "leave", value: { incarnation: first, secret } });
  await until("the server has ended", () => ended.some((frame) => frame.case === "serverEnded"));
  // P6 counts from the first start too: before it has passed, a stop still owes it.
  await until("P6 has passed", () => performance.now() - startedAt > 1.2 * LEASE_MS);
  agent.close();
  assert.equal(await coordinator.process.stop(), 0);
  await coordinator.restart();
  await until("the control plane is back", () => coordinator.control.connected);
  assert.equal(await holdLeftMs(coordinator), 0);
  const edge = new ProxyUnderTest(coordinator, "edge-2");
  await until("the feed is complete", () => edge.complete);
  const heir = coordinator.connect(Role.SERVER, "heir");
  const second = await registerPlain(heir, 20_002);
  const again = await edge.resolve("a", "plain");
  assert.equal(again.incarnation, second);
  assert.ok(again.epoch > placed.epoch);

  await coordinator.kill();
  await coordinator.restart();
  await until("the control plane is back", () => coordinator.control.connected);
  assert.ok((await holdLeftMs(coordinator)) > LEASE_MS / 2);
  const restartedAt = performance.now();
  // The heir does not come back: its key is free only when its lease and every answer are over.
  heir.close();
  const late = coordinator.connect(Role.SERVER, "late");
  await registerPlain(late, 20_003);
  assert.equal((await edge.resolve("a", "plain")).incarnation, second);
  await until("the key is placed again", async () => {
    return (await edge.resolve("a", "plain")).incarnation !== second;
  });
  assert.ok(performance.now() - restartedAt > LEASE_MS - 500);
});

test("T1 servers and edges come back to a restarted coordinator by themselves", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({ leaseMs: LEASE_MS });
  t.after(async () => coordinator.stop());
  const belay = await connect({
    service: "world",
    address: "127.0.0.1:20001",
    coordinator: coordinator.address,
    logger: quietLogger,
  });
  coordinator.onClose(async () => belay.close());
  const proxy = new ProxyUnderTest(coordinator);
  const { incarnation } = belay;
  for (let round = 0; round < 3; round += 1) {
    await coordinator.restart();
    const resolved = await proxy.resolve(`key-${round}`);
    assert.equal(resolved.incarnation, incarnation);
    assert.equal(belay.incarnation, incarnation);
  }
  await until("it holds what was placed", () => belay.heldKeys === 3);
});
