import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { until } from "@belay/testkit";
import { MintOutcome } from "@belay/protocol";
import { EdgeUnderTest } from "./edge-under-test.ts";
import { FakeServer } from "./fake-server.ts";

const [a, b] = [new FakeServer("a"), new FakeServer("b")];
const keys = [{ from: "header", name: "x-session" }];
const base = { keys, no_key: "balance", park_ms: 1500 };
let edge: EdgeUnderTest;
before(async () => {
  edge = await EdgeUnderTest.start({
    services: [
      {
        name: "agents",
        guarded: false,
        minted: true,
        servers: [a, b],
        routes: [
          { prefix: "/header", config: { ...base, minted: { from: "header", name: "x-session" } } },
          {
            prefix: "/cookie",
            config: {
              ...base,
              keys: [{ from: "cookie", name: "sid" }],
              minted: { from: "cookie", name: "sid" },
            },
          },
          { prefix: "/json", config: { ...base, minted: { from: "json", path: "$.session.id" } } },
          {
            prefix: "/text",
            config: { ...base, minted: { from: "body", pattern: "id=([a-z0-9]+)" } },
          },
          { prefix: "/", config: { ...base, unknown_key_status: 410 } },
        ],
      },
    ],
  });
  const mint: FakeServer["answer"] = (_request, response, seen) => {
    const url = new URL(seen.path, "http://x");
    const key = url.searchParams.get("key") ?? "";
    const body = url.searchParams.get("body") ?? JSON.stringify(seen);
    if (seen.path.startsWith("/header") && key !== "") {
      response.writeHead(200, { "x-session": key });
    } else if (seen.path.startsWith("/cookie")) {
      response.writeHead(200, { "set-cookie": ["other=1", `sid=${key}; Path=/; HttpOnly`] });
    } else response.writeHead(200);
    for (const piece of body.match(/[\s\S]{1,7}/g) ?? []) response.write(piece);
    response.end();
  };
  a.answer = mint;
  b.answer = mint;
});
after(async () => edge.stop());

const session = (key: string): string => JSON.stringify({ other: [1, 2], session: { id: key } });

for (const [name, path, key, next] of [
  ["header", "/header?key=h1", "h1", { "x-session": "h1" }],
  ["JSON body", `/json?body=${encodeURIComponent(session("j1"))}`, "j1", { "x-session": "j1" }],
  ["text body", "/text?body=welcome%20id%3Dt1%0A", "t1", { "x-session": "t1" }],
] as const) {
  test(`A7 a key minted in a ${name} is claimed for its server, and found from then on`, async () => {
    const first = await edge.ask(path);
    assert.equal(first.status, 200, first.body);
    if (name === "header") assert.equal(first.headers["x-session"], key);
    else assert.match(first.body, new RegExp(key));
    const shard = edge.coordinator.ownerOf("agents", key);
    assert.ok(shard, "claimed");
    for (let i = 0; i < 6; i++) {
      const seen = (await edge.ask("/later", { headers: next })).seen();
      assert.equal(edge.server(seen.server).incarnation, shard.incarnation);
    }
  });
}

test("A7 a key minted in a cookie is claimed", async () => {
  const first = await edge.ask("/cookie?key=c1");
  assert.equal(first.status, 200);
  const shard = edge.coordinator.ownerOf("agents", "c1");
  assert.ok(shard);
  const seen = (await edge.ask("/cookie?key=", { headers: { cookie: "sid=c1" } })).seen();
  assert.equal(edge.server(seen.server).incarnation, shard.incarnation);
});

test("A7 an answer without a key passes as it is", async () => {
  const big = "x".repeat(100_000);
  for (const path of ["/header?body=plain", "/json?body=%7B%7D", "/text?body=none"]) {
    const answer = await edge.ask(path);
    assert.equal(answer.status, 200);
  }
  a.answer = b.answer = ((old) => (request, response, seen) => {
    if (seen.path !== "/text/big") return old?.(request, response, seen);
    response.writeHead(200);
    response.end(big);
  })(a.answer);
  const answer = await edge.ask("/text/big");
  assert.equal(answer.body.length, big.length);
});

test("A7 an unknown key is never placed", async () => {
  const answer = await edge.ask("/x", { headers: { "x-session": "invented" } });
  assert.deepEqual([answer.status, answer.headers["x-belay-reason"]], [410, "unknown-key"]);
  assert.equal(edge.coordinator.ownerOf("agents", "invented"), undefined);
});

test("A7 a key that another server owns: 502 mint-conflict, the answer is withheld", async () => {
  edge.coordinator.mintOutcome = MintOutcome.CONFLICT;
  for (const path of ["/header?key=h2", "/text?body=id%3Dh2%0A"]) {
    const answer = await edge.ask(path);
    assert.deepEqual([answer.status, answer.headers["x-belay-reason"]], [502, "mint-conflict"]);
    assert.equal(answer.headers["x-session"], undefined);
    assert.match(answer.body, /^mint-conflict: /);
  }
  edge.coordinator.mintOutcome = undefined;
});

test("A7 a claim that nobody confirms: 503 mint-unconfirmed", async () => {
  edge.coordinator.deaf = true;
  const answer = await edge.ask("/header?key=h3");
  edge.coordinator.deaf = false;
  assert.deepEqual([answer.status, answer.headers["x-belay-reason"]], [503, "mint-unconfirmed"]);
  assert.equal(answer.headers["x-session"], undefined);
});

test("a client that leaves while its answer is held leaves nothing behind", async () => {
  edge.coordinator.deaf = true;
  const mints = (): number =>
    edge.coordinator.frames.filter((frame) => frame.case === "mint").length;
  const earlier = mints();
  const sockets = Array.from({ length: 20 }, (_, at) => {
    const socket = connect(edge.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(`GET /header?key=gone${at} HTTP/1.1\r\nhost: x\r\n\r\n`);
    return socket;
  });
  await until("all are held", () => mints() >= earlier + 20);
  await Promise.all(
    sockets.map(async (socket) => {
      socket.destroy();
      if (!socket.closed) await once(socket, "close");
    }),
  );
  edge.coordinator.deaf = false;
  await until(
    "nothing is active",
    async () => (await edge.metric("envoy_http_downstream_rq_active", '"edge"')) === 0,
  );
  assert.equal((await edge.ask("/header?key=h4")).status, 200);
});
