import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { BelayError, type LogFields } from "@belay/model";
import { type Batch, type CommitOutcome, MemoryStore, type Store } from "@belay/ownership";
import {
  CoordinatorConnection,
  createBootClock,
  createSystemRandom,
  type FrameBody,
  Placement,
  type Registered,
  type Resolved,
  ResolveOutcome,
  Role,
} from "@belay/protocol";
import { type CoordinatorOptions, type RunningCoordinator, startCoordinator } from "./index.ts";

const quiet = (_fields: LogFields, _message: string): void => undefined;
const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const clock = createBootClock();
const random = createSystemRandom();

async function start(
  t: TestContext,
  options: Partial<CoordinatorOptions> = {},
): Promise<RunningCoordinator & { exits: string[] }> {
  const exits: string[] = [];
  const coordinator = await startCoordinator({
    store: new MemoryStore(random),
    clock,
    random,
    logger,
    listen: { host: "127.0.0.1", port: 0 },
    onExit: ({ code }) => exits.push(code),
    ...options,
  });
  t.after(async () => coordinator.close());
  return { ...coordinator, exits };
}

async function connectTo(
  t: TestContext,
  address: { host: string; port: number },
  options: { role: Role; token?: string; onFrame?: (frame: FrameBody) => void },
): Promise<CoordinatorConnection> {
  const up = Promise.withResolvers<unknown>();
  const connection = new CoordinatorConnection({
    address,
    name: "test",
    software: "test",
    clock,
    random,
    logger,
    onConnected: up.resolve,
    onDisconnected: ({ problemCode }) => up.reject(new Error(problemCode)),
    ...options,
  });
  t.after(() => connection.close());
  await up.promise;
  return connection;
}

const world = {
  name: "world",
  leaseMs: 5000,
  feedLeaseMs: 5000,
  idleMs: 60_000,
  drainMs: 1000,
  parkMs: 2000,
  guarded: true,
  minted: false,
  placement: Placement.LEAST_LOADED,
  movesPerSecond: 100,
};

const register = async (connection: CoordinatorConnection, port: number): Promise<Registered> =>
  connection.request(
    (requestId) => ({
      case: "register",
      value: {
        requestId,
        service: "world",
        serverId: `server-${port}`,
        address: `127.0.0.1:${port}`,
        guarded: true,
        secret: random.bytes(32),
      },
    }),
    (body) => (body.case === "registered" ? body.value : undefined),
  );

const resolveKey = async (connection: CoordinatorConnection, key: string): Promise<Resolved> =>
  connection.request(
    (requestId) => ({ case: "resolve", value: { requestId, service: "world", key } }),
    (body) => (body.case === "resolved" ? body.value : undefined),
  );

test("A1 a key is placed on a registered server, and stays", async (t) => {
  const coordinator = await start(t);
  const control = await connectTo(t, coordinator.address, { role: Role.CONTROL_PLANE });
  await control.defineServices([world]);
  const grants: FrameBody[] = [];
  const server = await connectTo(t, coordinator.address, {
    role: Role.SERVER,
    onFrame: (frame) => grants.push(frame),
  });
  const { incarnation } = await register(server, 20_000);
  const proxy = await connectTo(t, coordinator.address, { role: Role.PROXY });
  const first = await resolveKey(proxy, "a");
  assert.equal(first.outcome, ResolveOutcome.OWNER);
  assert.equal(first.incarnation, incarnation);
  assert.equal(first.placed, true);
  const second = await resolveKey(proxy, "a");
  assert.equal(second.epoch, first.epoch);
  assert.equal(second.placed, false);
  const grant = grants.find((frame) => frame.case === "grant");
  assert.ok(grant?.case === "grant");
  assert.equal(grant.value.shards[0]?.epoch, first.epoch);
  const text = await coordinator.metrics();
  assert.match(text, /belay_coordinator_placements_total 1\n/);
  assert.match(text, /belay_coordinator_resolves_total\{outcome="owner"\} 2\n/);
  assert.match(text, /belay_coordinator_peers\{role="proxy"\} 1\n/);
  assert.equal(coordinator.status().shards, 1);
});

test("T1 a deposed coordinator says nothing more and ends", async (t) => {
  const store = new MemoryStore(random);
  const coordinator = await start(t, { store });
  const control = await connectTo(t, coordinator.address, { role: Role.CONTROL_PLANE });
  await store.takeOver(0);
  await assert.rejects(control.defineServices([world]), { code: "lost" });
  assert.deepEqual(coordinator.exits, ["deposed"]);
  assert.equal(control.connected, false);
});

test("T2 nothing is answered while a commit runs, all of it after", async (t) => {
  const inner = new MemoryStore(random);
  const gate = { open: Promise.withResolvers<void>(), batches: [] as Batch[] };
  gate.open.resolve();
  const store: Store = {
    name: "slow",
    exclusive: true,
    takeOver: async (seconds) => inner.takeOver(seconds),
    load: async () => inner.load(),
    close: async () => inner.close(),
    commit: async (batch): Promise<CommitOutcome> => {
      gate.batches.push(batch);
      await gate.open.promise;
      return inner.commit(batch);
    },
  };
  const coordinator = await start(t, { store });
  const control = await connectTo(t, coordinator.address, { role: Role.CONTROL_PLANE });
  await control.defineServices([world]);
  const server = await connectTo(t, coordinator.address, { role: Role.SERVER });
  await register(server, 20_000);
  const proxy = await connectTo(t, coordinator.address, { role: Role.PROXY });
  const before = gate.batches.length;
  gate.open = Promise.withResolvers();
  t.after(() => gate.open.resolve());
  let answered = 0;
  const asked = Array.from({ length: 50 }, async (_, index) => {
    await resolveKey(proxy, `key-${index}`);
    answered += 1;
  });
  const deadlineMs = performance.now() + 10_000;
  while (gate.batches.length === before) {
    assert.ok(performance.now() < deadlineMs, "the resolves never arrive");
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(answered, 0);
  gate.open.resolve();
  await Promise.all(asked);
  assert.ok(gate.batches.length - before <= 50);
});

test("a wrong token is refused, and none is an error beyond loopback", async (t) => {
  const coordinator = await start(t, { token: "right" });
  const role = Role.PROXY;
  await assert.rejects(connectTo(t, coordinator.address, { role, token: "wrong" }), /unauthorized/);
  await assert.rejects(connectTo(t, coordinator.address, { role }), /unauthorized/);
  await connectTo(t, coordinator.address, { role, token: "right" });
  await assert.rejects(start(t, { listen: { host: "0.0.0.0", port: 0 } }), (error) => {
    return error instanceof BelayError && error.code === "token-needed";
  });
});

test("a port in use is told before the store is touched", async (t) => {
  const first = await start(t);
  const store = new MemoryStore(random);
  await assert.rejects(start(t, { store, listen: first.address }), (error) => {
    return error instanceof BelayError && error.code === "port-in-use";
  });
  assert.equal(store.meta.term, 0n);
});
