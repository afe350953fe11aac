import assert from "node:assert/strict";
import { connect } from "node:net";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { EdgeUnderTest } from "./edge-under-test.ts";
import { envelopeBody, grpcMessage } from "./envelope-body.ts";
import { FakeServer, type Seen } from "./fake-server.ts";
import { Http2Client } from "./http2-client.ts";

const servers = ["a", "b", "c"].map((name) => new FakeServer(name));
const options = {
  services: [
    {
      name: "world",
      guarded: true,
      servers,
      routes: [
        { prefix: "/free", config: { keys: [] } },
        { prefix: "/by/", config: { keys: [{ from: "path", template: "/by/{server}" }] } },
        {
          prefix: "/",
          config: {
            keys: [
              { from: "path", template: "/s/{key}" },
              { from: "header", name: "x-player-id" },
              { from: "cookie", name: "sid" },
              { from: "query", name: "room" },
              { from: "host", template: "{key}.play.example.com" },
              { from: "envelope", field: 12, marker: "belay1", use: "player" },
            ],
          },
        },
      ],
    },
  ],
};
let edge: EdgeUnderTest;
before(async () => {
  edge = await EdgeUnderTest.start(options);
});
after(async () => edge.stop());

test("a path key is stripped, placed once, and always goes to the same server", async () => {
  const first = await edge.ask("/s/p1/hello?x=1");
  assert.equal(first.status, 200, first.body);
  const seen = first.seen();
  assert.equal(seen.path, "/hello?x=1");
  assert.equal(seen.headers["x-belay-key"], "p1");
  assert.equal(seen.headers["x-belay-attempt"], "1");
  const server = edge.server(seen.server);
  assert.equal(seen.headers["x-belay-incarnation"], String(server.incarnation));
  assert.equal(
    seen.headers["x-belay-epoch"],
    String(edge.coordinator.ownerOf("world", "p1")?.epoch),
  );
  for (let i = 0; i < 20; i++) assert.equal((await edge.ask("/s/p1/x")).seen().server, seen.server);
  assert.equal(resolvesOf("p1"), 1);
});

test("the same key from any of its places reaches the same server", async () => {
  const key = "p2";
  const answers = [
    await edge.ask(`/s/${key}`),
    await edge.ask("/x", { headers: { "x-player-id": key } }),
    await edge.ask("/x", { headers: { cookie: `other=1; sid=${key}` } }),
    await edge.ask(`/x?room=${key}`),
    await edge.ask("/x", { headers: { host: `${key}.play.example.com` } }),
    await edge.ask("/x", { body: envelopeBody(key) }),
    await edge.ask("/x", {
      body: grpcMessage(envelopeBody(key)),
      headers: { "content-type": "application/grpc" },
    }),
  ].map((answer) => answer.seen());
  assert.equal(new Set(answers.map((seen) => seen.server)).size, 1);
  assert.deepEqual([...new Set(answers.map((seen) => seen.headers["x-belay-key"]))], [key]);
  assert.equal(resolvesOf(key), 1);
});

test("HTTP/2 and WebSocket reach the same server as HTTP/1.1", async () => {
  const expected = (await edge.ask("/s/p3/x")).seen().server;
  const client = new Http2Client(edge.port);
  const answer = await client.ask({ ":path": "/s/p3/x", ":method": "GET" });
  assert.equal((JSON.parse(answer.body.toString()) as Seen).server, expected);
  await client.close();
  const socket = await edge.socket("/s/p3/socket");
  assert.equal(await socket.ask("hi"), `${expected}:hi`);
  socket.socket.close();
});

test("an envelope is found however the body arrives, and the body stays whole", async () => {
  const whole = await edge.ask("/x", { body: envelopeBody("p4", { before: 3000, after: 500 }) });
  const client = new Http2Client(edge.port);
  const body = envelopeBody("p4", { before: 300, after: 50 });
  const bytes = Array.from(body, (_, at) => body.subarray(at, at + 1));
  const dribbled = await client.ask({ ":path": "/x", ":method": "POST" }, bytes);
  const seen = JSON.parse(dribbled.body.toString()) as Seen;
  assert.equal(seen.server, whole.seen().server);
  assert.equal(seen.bytes, body.length);
  await client.close();

  const socket = connect(edge.port, "127.0.0.1");
  socket.write(
    "POST /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n",
  );
  for (const byte of bytes) {
    socket.write("1\r\n");
    socket.write(byte);
    socket.write("\r\n");
  }
  socket.write("0\r\n\r\n");
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  await once(socket, "close");
  assert.match(text, new RegExp(`"bytes":${body.length}`));
});

test("a large body streams on behind its envelope", async () => {
  const body = envelopeBody("p5", { after: 5_000_000 });
  const answer = await edge.ask("/x", { body });
  assert.equal(answer.status, 200, answer.body);
  assert.equal(answer.seen().bytes, body.length);
});

test("keys are percent-decoded once and encoded towards the server", async () => {
  const seen = (await edge.ask("/s/a%2Fb%20%C3%A4/x")).seen();
  assert.equal(seen.headers["x-belay-key"], "a%2Fb%20%C3%A4");
  const header = await edge.ask("/x", { headers: { "x-player-id": "a/b" } });
  assert.equal(header.seen().headers["x-belay-key"], "a%2Fb");
  assert.ok(edge.coordinator.ownerOf("world", "a/b ä"));
});

test("no key, a bad key, two keys, a broken envelope: their code, and no server", async () => {
  const earlier = handled();
  const cases: [string, number, string, object][] = [
    ["/x", 400, "no-key", {}],
    ["/x", 400, "no-key", { body: Buffer.from([8, 1]) }],
    ["/s/%00/x", 400, "bad-key", {}],
    ["/s/a%2/x", 400, "bad-key", {}],
    [`/s/${"k".repeat(257)}/x`, 400, "bad-key", {}],
    ["/s/p1/x", 400, "key-conflict", { headers: { "x-player-id": "p2" } }],
    ["/x", 400, "bad-envelope", { body: envelopeBody("p").subarray(0, 8) }],
    ["/x", 400, "bad-envelope", { body: Buffer.alloc(64, 0xff) }],
  ];
  for (const [path, status, reason, ask] of cases) {
    const answer = await edge.ask(path, ask);
    assert.deepEqual([answer.status, answer.headers["x-belay-reason"]], [status, reason], path);
    assert.match(answer.body, new RegExp(`^${reason}: `));
  }
  assert.equal(handled(), earlier);
});

test("gRPC gets its refusals as trailers-only with a status that is no success", async () => {
  const client = new Http2Client(edge.port);
  const headers = {
    ":path": "/pkg.Svc/Call",
    ":method": "POST",
    "content-type": "application/grpc",
  };
  const answer = await client.ask(headers, [grpcMessage(Buffer.from([8, 1]))]);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers["grpc-status"], "3");
  assert.equal(answer.headers["x-belay-reason"], "no-key");
  await client.close();
});

test("a WebSocket handshake that the edge answers keeps status and reason", async () => {
  const socket = await edge.socket("/x");
  assert.equal(socket.refused?.status, 400);
  assert.equal(socket.refused?.headers["x-belay-reason"], "no-key");
});

test("a server id names its server; unknown and gone ids never mean another", async () => {
  const named = await edge.ask("/by/b/x");
  assert.equal(named.seen().server, "b");
  assert.equal(named.seen().headers["x-belay-key"], undefined);
  assert.equal(named.seen().headers["x-belay-incarnation"], String(edge.server("b").incarnation));
  const unknown = await edge.ask("/by/zz/x");
  assert.deepEqual([unknown.status, unknown.headers["x-belay-reason"]], [404, "server-unknown"]);
  const gone = edge.coordinator.register("world", "ghost", "127.0.0.1:9");
  edge.coordinator.end(gone);
  await edge.ask("/by/ghost/x"); // orders the feed before the look
  const answer = await edge.ask("/by/ghost/x");
  assert.deepEqual([answer.status, answer.headers["x-belay-reason"]], [503, "server-gone"]);
});

test("a route without keys is spread over the active servers", async () => {
  const counts = new Map<string, number>();
  for (let i = 0; i < 60; i++) {
    const { server } = (await edge.ask("/free/x")).seen();
    counts.set(server, (counts.get(server) ?? 0) + 1);
  }
  assert.deepEqual([...counts.keys()].toSorted(), ["a", "b", "c"]);
  assert.ok(Math.max(...counts.values()) <= 40, JSON.stringify([...counts]));
});

function handled(): number {
  return servers.reduce((sum, server) => sum + server.seen.length, 0);
}

function resolvesOf(key: string): number {
  return edge.coordinator.frames.filter((one) => one.case === "resolve" && one.value.key === key)
    .length;
}
