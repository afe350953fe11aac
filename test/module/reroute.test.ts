import assert from "node:assert/strict";
import { Agent } from "node:http";
import { connect } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { until } from "@belay/testkit";
import { type Ask, EdgeUnderTest } from "./edge-under-test.ts";
import { REPLAY_BYTES } from "./envoy-config.ts";
import { grpcMessage } from "./envelope-body.ts";
import { FakeServer, type Seen } from "./fake-server.ts";
import { Http2Client } from "./http2-client.ts";

const route = {
  prefix: "/",
  config: {
    keys: [
      { from: "path", template: "/s/{key}" },
      { from: "header", name: "x-key" },
    ],
    park_ms: 4000,
  },
};
const parkMs = 4000;
let edge: EdgeUnderTest;
let [a, b]: [FakeServer, FakeServer] = [new FakeServer("a"), new FakeServer("b")];
const [c, d] = [new FakeServer("c", { http2: true }), new FakeServer("d", { http2: true })];
const [e, f] = [new FakeServer("e"), new FakeServer("f")];
const [bare, gone] = [new FakeServer("bare"), new FakeServer("gone")];
let next = 0;
before(async () => {
  edge = await EdgeUnderTest.start({
    services: [
      {
        name: "world",
        guarded: true,
        parkMs,
        servers: [a, b],
        routes: [{ ...route, host: "world" }],
      },
      {
        name: "grpc",
        guarded: true,
        parkMs,
        http2: true,
        servers: [c, d],
        routes: [{ ...route, host: "grpc" }],
      },
      {
        name: "plain",
        guarded: false,
        parkMs,
        servers: [e, f],
        routes: [{ ...route, host: "plain" }],
      },
      {
        name: "late",
        guarded: true,
        parkMs,
        servers: [],
        spare: [await bare.listen(), await gone.listen()],
        routes: [{ ...route, host: "late" }],
      },
    ],
  });
});
after(async () => {
  await bare.close();
  await edge.stop();
});
beforeEach(() => {
  for (const server of [a, b, c, d, e, f]) {
    server.refuses.clear();
    server.refusesEarly = false;
    server.refusesAs = undefined;
  }
});

/** A fresh key that `owner` has and the edge knows. */
async function owned(service: string, owner: FakeServer): Promise<string> {
  const key = `k${next++}`;
  edge.coordinator.own(service, key, edge.server(owner.name));
  const first = await ask(service, key);
  assert.equal(first.status, 200, first.body);
  assert.equal(first.seen().server, owner.name);
  return key;
}

async function ask(service: string, key: string, more: Ask = {}): ReturnType<EdgeUnderTest["ask"]> {
  return edge.ask(`/s/${key}/x`, { ...more, headers: { host: service, ...more.headers } });
}

/** The owner has given the key up, and the coordinator says so a moment later. */
function moveBehindTheEdge(
  service: string,
  key: string,
  [from, to]: [FakeServer, FakeServer],
): void {
  edge.coordinator.own(service, key, edge.server(to.name));
  from.refuses.set(key, BigInt(edge.coordinator.ownerOf(service, key)?.epoch ?? 0));
}

for (const [name, more] of [
  ["GET", {}],
  ["POST", { body: Buffer.alloc(100_000, 7) }],
  ["DELETE", { method: "DELETE" }],
] as const) {
  test(`R1 a refused ${name} is sent again to the owner that the coordinator names`, async () => {
    const key = await owned("world", a);
    moveBehindTheEdge("world", key, [a, b]);
    const answer = await ask("world", key, more);
    assert.equal(answer.status, 200, answer.body);
    assert.equal(answer.seen().server, "b");
    assert.equal(answer.seen().headers["x-belay-attempt"], "2");
    assert.equal(
      answer.seen().headers["x-belay-epoch"],
      String(edge.coordinator.ownerOf("world", key)?.epoch),
    );
    assert.equal(answer.seen().bytes, "body" in more ? 100_000 : 0);
    assert.equal(answer.headers["x-belay-refused"], undefined);
  });
}

test("R1 a refusal that comes before the body ends is sent again whole", async () => {
  const key = await owned("world", a);
  moveBehindTheEdge("world", key, [a, b]);
  a.refusesEarly = true;
  const answer = await ask("world", key, { body: Buffer.alloc(200_000, 7) });
  assert.equal(answer.status, 200, answer.body);
  assert.deepEqual([answer.seen().server, answer.seen().bytes], ["b", 200_000]);
});

test("W1 a refused WebSocket handshake is sent again", async () => {
  const key = await owned("world", a);
  moveBehindTheEdge("world", key, [a, b]);
  const socket = await edge.socket(`/s/${key}/x`, { host: "world" });
  assert.equal(await socket.ask("hi"), "b:hi");
  socket.socket.close();
});

test("G4 a trailers-only gRPC refusal over HTTP/2 is sent again", async () => {
  const key = `k${next++}`;
  edge.coordinator.own("grpc", key, edge.server("c"));
  const client = new Http2Client(edge.port);
  const headers = {
    ":path": "/pkg.Svc/Call",
    ":method": "POST",
    ":authority": "grpc",
    "content-type": "application/grpc",
    "x-key": key,
  };
  const message = [grpcMessage(Buffer.from("hello"))];
  const first = JSON.parse((await client.ask(headers, message)).body.toString()) as Seen;
  assert.equal(first.server, "c");
  moveBehindTheEdge("grpc", key, [c, d]);
  const second = JSON.parse((await client.ask(headers, message)).body.toString()) as Seen;
  assert.deepEqual([second.server, second.bytes], ["d", 10]);
  await client.close();
});

for (const service of ["world", "plain"]) {
  const [from, to] = service === "world" ? [() => a, () => b] : [() => e, () => f];
  test(`M2 requests to a moving key of ${service} wait and go to the new owner, none to another server`, async () => {
    const key = await owned(service, from());
    edge.coordinator.startMove(service, key);
    const count = from().seen.length;
    // The same client connection as before says nothing about the feed: wait for the acknowledgement.
    await until("the move is applied", () => dropped(edge) >= edge.coordinator.revision);
    const waiting = [
      ask(service, key),
      ask(service, key, { body: Buffer.alloc(50_000) }),
      edge.socket(`/s/${key}/x`, { host: service }).then(async (socket) => socket.ask("hi")),
    ] as const;
    await until("they are held", async () => (await edge.metric("belay_parked")) >= 3);
    edge.coordinator.finishMove(service, key, edge.server(to().name));
    const [get, post, socket] = await Promise.all(waiting);
    assert.equal(get.seen().server, to().name);
    assert.deepEqual([post.seen().server, post.seen().bytes], [to().name, 50_000]);
    assert.equal(socket, `${to().name}:hi`);
    assert.equal(from().seen.length, count);
  });
}

test("a refusal while the key moves waits in the waiting room, not at a server", async () => {
  const key = await owned("world", a);
  a.refuses.set(key, edge.coordinator.revision + 1n);
  edge.coordinator.startMove("world", key);
  const answers = Promise.all([
    ask("world", key),
    ask("world", key, { body: "x" }),
    ask("world", key),
  ]);
  await until("the move is applied", () => dropped(edge) >= edge.coordinator.revision);
  edge.coordinator.finishMove("world", key, edge.server("b"));
  for (const answer of await answers) assert.equal(answer.seen().server, "b");
});

test("250 refused requests wait in the waiting room at once; 50 more leave it; nothing is left behind", async () => {
  const key = await owned("world", a);
  a.refuses.set(key, edge.coordinator.revision + 1n);
  a.refusesEarly = true;
  edge.coordinator.deaf = true;
  const agent = new Agent({ maxSockets: Infinity });
  const answers = Array.from({ length: 250 }, async (_, at) =>
    ask("world", key, at % 2 === 0 ? { agent } : { agent, body: Buffer.alloc(5_000, 7) }),
  );
  const leaving = Array.from({ length: 50 }, () => {
    const socket = connect(edge.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(`POST /s/${key}/x HTTP/1.1\r\nhost: world\r\ncontent-length: 9\r\n\r\nabc`);
    return socket;
  });
  await until("they are held", async () => (await edge.metric("belay_parked")) >= 300);
  for (const socket of leaving) socket.destroy();
  await until("50 have left", async () => (await edge.metric("belay_parked")) <= 250);
  edge.coordinator.deaf = false;
  edge.coordinator.own("world", key, edge.server("b"));
  edge.coordinator.cut(); // what was asked for is asked again after the snapshot
  for (const answer of await Promise.all(answers)) {
    assert.equal(answer.status, 200, answer.body);
    assert.equal(answer.seen().server, "b");
  }
  agent.destroy();
  await until(
    "nothing is active",
    async () => (await edge.metric("envoy_http_downstream_rq_active", '"belay_room"')) === 0,
  );
});

test("M5 a key that moves for longer than the park time ends with 503 moving", async () => {
  const key = await owned("world", a);
  edge.coordinator.startMove("world", key);
  await until("the move is applied", () => dropped(edge) >= edge.coordinator.revision);
  const answer = await ask("world", key);
  assert.deepEqual([answer.status, answer.headers["x-belay-reason"]], [503, "moving"]);
  assert.equal(answer.headers["retry-after"], "1");
  edge.coordinator.finishMove("world", key, edge.server("b"));
});

test("R2 a request that every owner refuses ends with 503 refused", async () => {
  const key = await owned("world", a);
  a.refuses.set("*", edge.coordinator.revision);
  b.refuses.set("*", edge.coordinator.revision);
  const earlier = a.refusals + b.refusals;
  const answer = await ask("world", key);
  assert.deepEqual([answer.status, answer.headers["x-belay-reason"]], [503, "refused"]);
  assert.equal(answer.headers["x-belay-refused"], undefined);
  assert.ok(a.refusals + b.refusals - earlier <= 4);
});

test("R1 a server that knows less than the edge gets one more try", async () => {
  const key = await owned("world", a);
  a.refuses.set(key, 1n);
  const answers = ask("world", key);
  await until("it refused once", () => a.refusals > 0);
  a.refuses.delete(key);
  assert.equal((await answers).seen().server, "a");
});

test("G4 a refusal of another incarnation is dropped: outcome unknown, no other try", async () => {
  const key = await owned("world", a);
  a.refuses.set(key, 1_000_000n);
  a.refusesAs = 1n;
  const answer = await ask("world", key);
  assert.deepEqual([answer.status, answer.headers["x-belay-reason"]], [503, "outcome-unknown"]);
});

test("H14 the application's own 421 goes to the client untouched, once", async () => {
  const key = await owned("world", a);
  let calls = 0;
  a.answer = (_request, response) => {
    calls++;
    response.writeHead(421).end("mine");
  };
  const answer = await ask("world", key, { body: "x" });
  a.answer = undefined;
  assert.deepEqual([answer.status, answer.body, calls], [421, "mine", 1]);
});

test("R5 a refused body beyond the replay buffer: 503 too-large-to-resend", async () => {
  const key = await owned("world", a);
  moveBehindTheEdge("world", key, [a, b]);
  const answer = await ask("world", key, { body: Buffer.alloc(4 * REPLAY_BYTES, 7) });
  assert.deepEqual([answer.status, answer.headers["x-belay-reason"]], [503, "too-large-to-resend"]);
});

test("R3 a server that is gone while its lease lives: the request waits until the key has another owner", async () => {
  const registered = edge.coordinator.register("late", "gone", gone.address);
  edge.registered.set("gone", registered);
  const later = edge.coordinator.register("late", "bare", bare.address);
  edge.registered.set("bare", later);
  bare.incarnation = later.incarnation;
  const key = `k${next++}`;
  edge.coordinator.own("late", key, registered);
  await gone.close();
  const answer = ask("late", key, { body: "once" });
  await until("it waits", async () => (await edge.requests("late", "waited")) > 0);
  edge.coordinator.end(registered);
  edge.coordinator.own("late", key, later);
  assert.equal((await answer).seen().server, "bare");
  assert.equal(bare.seen.length, 1);
});

test("R3 a server that dies with the request in hand: outcome unknown, not sent again", async () => {
  const key = await owned("world", a);
  let calls = 0;
  a.answer = (request) => {
    calls++;
    request.socket?.destroy();
  };
  const answer = await ask("world", key, { body: "x" });
  a.answer = undefined;
  assert.deepEqual(
    [answer.status, answer.headers["x-belay-reason"], calls],
    [503, "outcome-unknown", 1],
  );
});

function dropped(under: EdgeUnderTest): bigint {
  return under.coordinator.dropped;
}
