import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { until } from "@belay/testkit";
import { EdgeUnderTest } from "./edge-under-test.ts";
import { field } from "./envelope-body.ts";
import { FakeServer, type Seen } from "./fake-server.ts";
import { Http2Client } from "./http2-client.ts";

const a = new FakeServer("a");
const LOG =
  "LOG %REQ(:PATH)% %DYNAMIC_METADATA(belay:key)% %DYNAMIC_METADATA(belay:owner)% %DYNAMIC_METADATA(belay:epoch)% %DYNAMIC_METADATA(belay:outcome)% %RESPONSE_CODE%";
let edge: EdgeUnderTest;
before(async () => {
  edge = await EdgeUnderTest.start({
    accessLog: LOG,
    services: [
      {
        name: "world",
        guarded: true,
        servers: [a],
        routes: [
          {
            prefix: "/",
            config: {
              keys: [
                { from: "path", template: "/s/{key}" },
                { from: "envelope", field: 0, marker: "belay1", use: "player" },
              ],
            },
          },
        ],
      },
    ],
  });
});
after(async () => edge.stop());

const SPOOFED = {
  "x-belay-key": "victim",
  "x-belay-epoch": "999",
  "x-belay-incarnation": "1",
  "x-belay-attempt": "7",
  "x-belay-server": "1",
  "x-belay-wait": "r;99999999;0;0;other",
  "x-envoy-retry-on": "5xx",
  "x-envoy-max-retries": "9",
  "x-envoy-upstream-rq-timeout-ms": "1",
  "x-envoy-retriable-status-codes": "200",
  "x-envoy-hedge-on-per-try-timeout": "true",
  "x-envoy-upstream-alt-stat-name": "x",
  "x-envoy-anything": "x",
};

test("P4 what a client says in our headers is not believed", async () => {
  const { headers } = (await edge.ask("/s/p1/x", { headers: SPOOFED })).seen();
  assert.equal(headers["x-belay-key"], "p1");
  assert.equal(headers["x-belay-attempt"], "1");
  assert.equal(headers["x-belay-incarnation"], String(edge.server("a").incarnation));
  const ours = Object.keys(headers).filter((name) => /^x-(belay|envoy)-/.test(name));
  const allowed = new Set([
    "x-belay-key",
    "x-belay-attempt",
    "x-belay-incarnation",
    "x-belay-epoch",
    "x-envoy-expected-rq-timeout-ms",
  ]);
  assert.deepEqual(
    ours.filter((name) => !allowed.has(name)),
    [],
  );
});

test("P4 a spoofed key on a route that finds none is no key", async () => {
  const answer = await edge.ask("/x", { headers: SPOOFED });
  assert.equal(answer.headers["x-belay-reason"], "no-key");
});

test("P4 trailers: stripped from the client, and from the application", async () => {
  const client = new Http2Client(edge.port);
  a.answer = (_request, response, seen) => {
    response.writeHead(200, { trailer: "x-belay-epoch, x-kept" });
    response.write(JSON.stringify(seen));
    response.addTrailers({
      "x-belay-epoch": "1",
      "x-belay-refused": "1; as-of=1; reason=x",
      "x-kept": "yes",
    });
    response.end();
  };
  const trailers = { "x-belay-key": "victim", "x-envoy-retry-on": "5xx", "x-mine": "yes" };
  const answer = await client.ask(
    { ":path": "/s/p1/x", ":method": "POST" },
    [Buffer.from("x")],
    trailers,
  );
  a.answer = undefined;
  const seen = JSON.parse(answer.body.toString()) as Seen;
  assert.deepEqual({ ...seen.trailers }, { "x-mine": "yes" });
  assert.equal(answer.trailers["x-kept"], "yes");
  assert.equal(answer.trailers["x-belay-epoch"], undefined);
  assert.equal(answer.trailers["x-belay-refused"], undefined);
  await client.close();
});

test("P4 the application's own x-belay headers do not leave", async () => {
  a.answer = (_request, response) => {
    response.writeHead(200, {
      "x-belay-epoch": "1",
      "x-belay-reason": "moving",
      "x-belay-secret": "x",
      "x-kept": "yes",
    });
    response.end("ok");
  };
  const answer = await edge.ask("/s/p1/x");
  a.answer = undefined;
  assert.deepEqual(
    Object.keys(answer.headers).filter((name) => name.startsWith("x-belay-")),
    [],
  );
  assert.equal(answer.headers["x-kept"], "yes");
});

test("broken protobuf bodies get 400 or pass as no key; nothing crashes", async () => {
  const nested = Array.from({ length: 2000 }).reduce<Buffer>(
    (inner) => field(1, inner),
    Buffer.from("x"),
  );
  const everywhere = Buffer.concat(
    Array.from({ length: 300 }, (_, at) =>
      field(at + 1, Buffer.concat([field(1, "belay2"), field(5, "p")])),
    ),
  );
  const bodies = [
    Buffer.alloc(0),
    Buffer.alloc(100_000, 0x80),
    Buffer.from([0x62, 0xff, 0xff, 0xff, 0xff, 0x7f]),
    Buffer.from([0x0b, 0x0c, 0x07, 0x06]),
    nested,
    everywhere,
  ];
  for (const body of bodies) {
    const answer = await edge.ask("/x", { body });
    assert.equal(answer.status, 400, body.subarray(0, 8).toString("hex"));
    assert.match(String(answer.headers["x-belay-reason"]), /^(no-key|bad-envelope)$/);
  }
  assert.ok(edge.envoy.running);
});

test("an abort at any moment leaves nothing behind", async () => {
  edge.coordinator.deaf = true;
  const requests = [
    "GET /s/abort1/x HTTP/1.1\r\nhost: x\r\n\r\n",
    "POST /s/abort2/x HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nabc",
    "POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n\x62\x10",
    "GET /s/abort3/x HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  ];
  const sockets = Array.from({ length: 400 }, (_, at) => {
    const socket = connect(edge.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(requests[at % requests.length] ?? "");
    return socket;
  });
  await until("they are held", async () => (await edge.metric("belay_parked")) >= 300);
  for (const socket of sockets) socket.destroy();
  edge.coordinator.deaf = false;
  await until("none is parked", async () => (await edge.metric("belay_parked")) === 0);
  await until(
    "none is active",
    async () => (await edge.metric("envoy_http_downstream_rq_active", '"edge"')) === 0,
  );
  assert.equal((await edge.ask("/s/after/x")).status, 200);
});

test("access log fields: the key is hashed, owner and epoch and outcome are there", async () => {
  await edge.ask("/s/logged/one");
  const [, key, owner, epoch, outcome, code] = await edge.envoy.printed(
    /LOG \/one (\S+) (\S+) (\S+) (\S+) (\d+)/,
  );
  assert.match(String(key), /^[0-9a-f]{16}$/);
  assert.deepEqual([owner, outcome, code], ["a", "parked", "200"]);
  assert.equal(epoch, String(edge.coordinator.ownerOf("world", "logged")?.epoch));
  await edge.ask("/s/logged/one");
  await edge.envoy.printed(/ hit 200\n$/);
});

test("metrics have fixed labels and stand on the Prometheus page", async () => {
  const hits = await edge.requests("world", "hit");
  for (let i = 0; i < 5; i++) await edge.ask("/s/p1/x");
  await until("hits are counted", async () => (await edge.requests("world", "hit")) >= hits + 5);
  await edge.ask("/x");
  await until(
    "answers are counted",
    async () => (await edge.metric("belay_answers", 'reason="no-key"')) > 0,
  );
  const page = await (await fetch(`http://127.0.0.1:${edge.adminPort}/stats/prometheus`)).text();
  for (const name of [
    "map_entries",
    "map_bytes",
    "feed_revision",
    "feed_age_ms",
    "lease_left_ms",
    "parked",
    "resolve_ms_bucket",
    "resolve_ms_count",
  ]) {
    assert.match(page, new RegExp(`belay_${name}`), name);
  }
  assert.ok((await edge.metric("belay_lease_left_ms")) > 0);
  assert.equal(await edge.metric("belay_panics"), 0);
});
