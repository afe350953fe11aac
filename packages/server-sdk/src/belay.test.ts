import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, request, type Server } from "node:http";
import { connect as connectHttp2, createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import test, { type TestContext } from "node:test";
import { type RunningCoordinator, startCoordinator } from "@belay/coordinator";
import { BelayError, type LogFields } from "@belay/model";
import { MemoryStore } from "@belay/ownership";
import {
  CoordinatorConnection,
  createBootClock,
  createSystemRandom,
  Placement,
  type Resolved,
  Role,
} from "@belay/protocol";
import { type Belay, connect } from "./index.ts";

const quiet = (_fields: LogFields, _message: string): void => undefined;
const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const clock = createBootClock();
const random = createSystemRandom();

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

interface Peers {
  readonly coordinator: RunningCoordinator;
  readonly control: CoordinatorConnection;
  readonly proxy: CoordinatorConnection;
}

async function peer(t: TestContext, { address }: RunningCoordinator, role: Role) {
  const up = Promise.withResolvers<unknown>();
  const connection = new CoordinatorConnection({
    address,
    role,
    name: "test",
    software: "test",
    clock,
    random,
    logger,
    onConnected: up.resolve,
  });
  t.after(() => connection.close());
  await up.promise;
  return connection;
}

async function startPeers(t: TestContext): Promise<Peers> {
  const coordinator = await startCoordinator({
    store: new MemoryStore(random),
    clock,
    random,
    logger,
    listen: { host: "127.0.0.1", port: 0 },
    onExit: () => undefined,
  });
  t.after(async () => coordinator.close());
  const control = await peer(t, coordinator, Role.CONTROL_PLANE);
  await control.defineServices([world]);
  return { coordinator, control, proxy: await peer(t, coordinator, Role.PROXY) };
}

async function listen(t: TestContext, server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

async function join(t: TestContext, { coordinator }: Peers, port: number): Promise<Belay> {
  const belay = await connect({
    service: "world",
    address: `127.0.0.1:${port}`,
    coordinator: `127.0.0.1:${coordinator.address.port}`,
    logger,
  });
  t.after(async () => belay.close());
  return belay;
}

const resolveKey = async ({ proxy }: Peers, key: string): Promise<Resolved> =>
  proxy.request(
    (requestId) => ({ case: "resolve", value: { requestId, service: "world", key } }),
    (body) => (body.case === "resolved" ? body.value : undefined),
  );

const identityOf = (
  key: string,
  { incarnation, epoch }: { incarnation: bigint; epoch: bigint },
) => ({
  "x-belay-key": key,
  "x-belay-epoch": String(epoch),
  "x-belay-incarnation": String(incarnation),
});

async function get(port: number, headers: Record<string, string>) {
  const outgoing = request({ port, host: "127.0.0.1", headers, agent: false });
  outgoing.end();
  const [incoming] = await once(outgoing, "response");
  let body = "";
  for await (const chunk of incoming) body += String(chunk);
  const answered: { status: number; headers: IncomingHttpHeaders; body: string } = {
    status: incoming.statusCode,
    headers: incoming.headers,
    body,
  };
  return answered;
}

test("G1-G4 admitted is what names this life and a key held at that epoch, all else is 421", async (t) => {
  const peers = await startPeers(t);
  const server = createServer();
  const port = await listen(t, server);
  const belay = await join(t, peers, port);
  const handled: string[] = [];
  server.on(
    "request",
    belay.handler((_request, reply, { key, epoch }) => {
      handled.push(`${key}@${epoch}`);
      reply.end("ok");
    }),
  );
  const { incarnation } = belay;
  const owned = await resolveKey(peers, "a");
  const { epoch } = owned;
  const good = await get(port, identityOf("a", owned));
  assert.deepEqual([good.status, good.headers["x-belay-epoch"]], [200, String(epoch)]);
  // G3: below mine while I own it is served, and answered with mine.
  const below = await get(port, identityOf("a", { incarnation, epoch: epoch - 1n }));
  assert.deepEqual([below.status, below.headers["x-belay-epoch"]], [200, String(epoch)]);
  const keyless = await get(port, { "x-belay-incarnation": String(incarnation) });
  assert.equal(keyless.status, 200);
  assert.deepEqual(handled, [`a@${epoch}`, `a@${epoch}`, "undefined@0"]);

  const refused = [
    [{}, incarnation],
    [identityOf("a", { incarnation: incarnation + 1n, epoch }), incarnation + 1n],
    [identityOf("never-placed", { incarnation, epoch: 0n }), incarnation],
    [identityOf("a", { incarnation, epoch: epoch + 1000n }), incarnation],
  ] as const;
  for (const [headers, addressed] of refused.slice(0, 3)) {
    const { status, headers: answer } = await get(port, headers);
    assert.equal(status, 421);
    const pattern = new RegExp(`^${addressed}; as-of=\\d+; reason=(unknown|moved)$`);
    assert.match(String(answer["x-belay-refused"]), pattern);
  }
  assert.equal(handled.length, 3);
});

test("G5 a key's first request waits for onAcquire; one that fails is refused as not-ready", async (t) => {
  const peers = await startPeers(t);
  const server = createServer();
  const port = await listen(t, server);
  const belay = await join(t, peers, port);
  const loaded = Promise.withResolvers<void>();
  let calls = 0;
  belay.onAcquire(async (key) => {
    calls += 1;
    if (key === "broken") throw new Error("no database");
    await loaded.promise;
  });
  server.on(
    "request",
    belay.handler((_request, reply) => reply.end("ok")),
  );
  const owned = await resolveKey(peers, "a");
  const first = get(port, identityOf("a", owned));
  const broken = await resolveKey(peers, "broken");
  const refused = await get(port, identityOf("broken", broken));
  assert.equal(refused.status, 421);
  assert.match(String(refused.headers["x-belay-refused"]), /reason=not-ready$/);
  loaded.resolve();
  assert.equal((await first).status, 200);
  assert.ok(calls >= 2);
});

test("M3 onRelease ends before the next owner is named", async (t) => {
  const peers = await startPeers(t);
  const order: string[] = [];
  const servers = await Promise.all(
    ["one", "two"].map(async (name) => {
      const server = createServer();
      const port = await listen(t, server);
      const belay = await join(t, peers, port);
      belay.onAcquire(() => void order.push(`${name} acquires`));
      belay.onRelease(async () => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        order.push(`${name} has released`);
      });
      const handle = belay.handler((_request, reply) => reply.end(name));
      server.on("request", handle);
      return { name, port, belay };
    }),
  );
  const owned = await resolveKey(peers, "a");
  const owner = servers.find(({ belay }) => belay.incarnation === owned.incarnation);
  const other = servers.find(({ belay }) => belay.incarnation !== owned.incarnation);
  assert.ok(owner !== undefined && other !== undefined);
  assert.equal((await get(owner.port, identityOf("a", owned))).body, owner.name);
  await peers.control.ask({ case: "move", value: { service: "world", key: "a" } });
  let moved = await resolveKey(peers, "a");
  const deadlineMs = performance.now() + 10_000;
  while (moved.incarnation !== other.belay.incarnation && performance.now() < deadlineMs) {
    moved = await resolveKey(peers, "a");
  }
  assert.equal((await get(other.port, identityOf("a", moved))).body, other.name);
  assert.deepEqual(order, [
    `${owner.name} acquires`,
    `${owner.name} has released`,
    `${other.name} acquires`,
  ]);
  assert.equal((await get(owner.port, identityOf("a", owned))).status, 421);
});

test("G4 over HTTP/2 a gRPC call is refused trailers-only, an admitted one is handled", async (t) => {
  const peers = await startPeers(t);
  const server = createHttp2Server();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const belay = await join(t, peers, port);
  server.on(
    "request",
    belay.handler((_request, reply, { key }) => {
      reply.setHeader("x-belay-reason", "mine");
      reply.end(`for ${key}`);
    }),
  );
  const client = connectHttp2(`http://127.0.0.1:${port}`);
  t.after(() => {
    client.close();
    server.close();
  });
  const call = async (headers: Record<string, string>) => {
    const stream = client.request({ ":method": "POST", ":path": "/a.B/C", ...headers });
    stream.end();
    const [answer] = await once(stream, "response");
    let body = "";
    for await (const chunk of stream) body += String(chunk);
    return { answer, body };
  };
  const grpc = { "content-type": "application/grpc" };
  const refused = await call(grpc);
  assert.equal(refused.answer[":status"], 200);
  assert.equal(refused.answer["grpc-status"], "14");
  assert.match(refused.answer["x-belay-refused"], /reason=unknown/);
  const owned = await resolveKey(peers, "a");
  const admitted = await call({ ...grpc, ...identityOf("a", owned) });
  assert.equal(admitted.body, "for a");
  assert.equal(admitted.answer["x-belay-epoch"], String(owned.epoch));
  assert.equal(admitted.answer["x-belay-reason"], undefined);
});

test("a registration that can never succeed rejects with what to do", async (t) => {
  const { coordinator } = await startPeers(t);
  const options = {
    service: "world",
    coordinator: `127.0.0.1:${coordinator.address.port}`,
    logger,
  };
  const rejects = async (more: { address: string }, pattern: RegExp) =>
    assert.rejects(connect({ ...options, ...more }), (error) => {
      assert.ok(error instanceof BelayError);
      assert.match(error.message, pattern);
      return true;
    });
  await rejects({ address: "localhost:80" }, /not IP:port/);
  await assert.rejects(connect({ ...options, address: "127.0.0.1:1", coordinator: "nowhere" }), {
    code: "usage",
  });
});

test("after close nothing is admitted, and another server can have the keys at once", async (t) => {
  const peers = await startPeers(t);
  const server = createServer();
  const port = await listen(t, server);
  const belay = await join(t, peers, port);
  server.on(
    "request",
    belay.handler((_request, reply) => reply.end("ok")),
  );
  const owned = await resolveKey(peers, "a");
  await belay.close();
  assert.equal((await get(port, identityOf("a", owned))).status, 421);
  const heir = await join(t, peers, 20_000);
  const next = await resolveKey(peers, "a");
  assert.equal(next.incarnation, heir.incarnation);
  assert.ok(next.epoch > owned.epoch);
});

test("M6 a drained server goes on refusing as long as edges that have not heard send to it", async (t) => {
  const peers = await startPeers(t);
  const server = createServer();
  const port = await listen(t, server);
  const belay = await join(t, peers, port);
  server.on(
    "request",
    belay.handler((_request, reply) => reply.end("ok")),
  );
  const stale = identityOf("a", { incarnation: belay.incarnation, epoch: 0n });
  let isDrained = false;
  const drained = belay.drain().then(() => {
    isDrained = true;
  });
  for (let sent = 0; sent < 30; sent += 1) {
    assert.equal((await get(port, stale)).status, 421);
    assert.equal(isDrained, false);
  }
  await drained;
});
