import assert from "node:assert/strict";
import { connect, type ClientHttp2Session } from "node:http2";
import { after, before, test } from "node:test";
import { BelayUnderTest, until } from "@belay/testkit";
import { WebSocket } from "ws";
import { envelopeOf } from "./envelope.ts";
import { findBreaches, readRuns } from "./record.ts";
import { addServer, gone, parseAnswer, placeKeys, recordOf, worldYaml } from "./world.ts";

// What a request meets: the same key, from any place and over any protocol, is always the same server.
const byServerYaml = `
service: by-server
hosts: [servers.example.com]
key:
  - path: /at/{server}/**
ownership: { guard: sdk, lease: 3s }
`;

let belay: BelayUnderTest;

before(async () => {
  belay = await BelayUnderTest.start({ world: worldYaml, "by-server": byServerYaml });
  await Promise.all(["a", "b", "c"].map((id) => addServer(belay, id)));
});

after(async () => {
  await belay.stop();
});

function overHttp2(session: ClientHttp2Session, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const stream = session.request({ ":path": path, ":authority": "127.0.0.1" });
  let body = "";
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    body += text;
  });
  stream.on("end", () => {
    resolve(body);
  });
  stream.on("error", reject);
  stream.end();
  return promise;
}

async function overWebSocket(key: string): Promise<string> {
  const socket = new WebSocket(`ws://127.0.0.1:${belay.ports.edge}/s/${key}/`);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.on("open", () => {
    socket.send("hello");
  });
  socket.on("message", (data) => {
    resolve((JSON.parse(String(data)) as { server: string }).server);
  });
  socket.on("error", reject);
  const server = await promise;
  socket.close();
  return server;
}

test("N1 C3: a key from any of its places, over HTTP/1.1, HTTP/2 and WebSocket, is one server", async () => {
  const session = connect(`http://127.0.0.1:${belay.ports.edge}`);
  for (const key of ["ann", "bob", "cem", "dora", "edgar"]) {
    const seen = new Set<string>();
    const shots = [
      { path: `/s/${key}/inventory?x=1` },
      { path: "/", headers: { "x-player-id": key } },
      { path: "/", headers: { cookie: `a=b; player=${key}` } },
      { path: `/?player=${key}` },
      {
        path: "/rpc",
        method: "POST",
        headers: { "content-type": "application/x-protobuf" },
        body: envelopeOf(key),
      },
      { path: `/s/${key}/`, headers: { "x-player-id": key } },
    ];
    for (const shot of shots) {
      const reply = await belay.get(shot);
      assert.equal(reply.status, 200, `${shot.path}: ${reply.body}`);
      const answer = parseAnswer(reply);
      assert.equal(answer.key, key);
      seen.add(answer.server);
    }
    const h2 = JSON.parse(await overHttp2(session, `/s/${key}/`)) as { server: string };
    seen.add(h2.server);
    seen.add(await overWebSocket(key));
    assert.equal(seen.size, 1, `${key} was at ${[...seen].join(", ")}`);
  }
  session.close();
});

test("N1: the path's prefix is stripped and the query kept", async () => {
  const answer = parseAnswer(await belay.get({ path: "/s/ann/inventory/3?x=1&y=%2F" }));
  assert.equal(answer.path, "/inventory/3?x=1&y=%2F");
  assert.equal(parseAnswer(await belay.get({ path: "/s/ann" })).path, "/");
});

test("C4: 1,000 keys spread over 3 servers, max/mean <= 1.25", async () => {
  const keys = Array.from({ length: 1_000 }, (_, index) => `spread-${index}`);
  const owners = await placeKeys(belay, keys);
  const sizes = [...Map.groupBy(owners.values(), (server) => server).values()].map(
    (list) => list.length,
  );
  assert.equal(sizes.length, 3);
  assert.ok(Math.max(...sizes) / (1_000 / 3) <= 1.25, `sizes ${sizes.join(", ")}`);
  const again = await placeKeys(belay, keys);
  assert.deepEqual(again, owners);
});

test("requests without a usable key get the documented code and reason, never another server", async () => {
  const cases: [Parameters<typeof belay.get>[0], number, string][] = [
    [{ path: "/" }, 400, "no-key"],
    [{ path: "/s/%zz/" }, 400, "bad-key"],
    [{ path: "/s/%0A/" }, 400, "bad-key"],
    [{ path: `/s/${"k".repeat(257)}/` }, 400, "bad-key"],
    [{ path: "/s/ann/", headers: { "x-player-id": "bob" } }, 400, "key-conflict"],
    [{ path: "/?player=ann", headers: { cookie: "player=bob" } }, 400, "key-conflict"],
  ];
  const runsBefore = readRuns(recordOf(belay)).length;
  for (const [shot, status, reason] of cases) {
    const reply = await belay.get(shot);
    assert.equal(reply.status, status, `${shot.path}: ${reply.body}`);
    assert.equal(reply.headers["x-belay-reason"], reason);
  }
  assert.equal(readRuns(recordOf(belay)).length, runsBefore);
});

test("N1: server ids reach that server; unknown ones are 404, gone ones 503", async () => {
  const host = { host: "servers.example.com" };
  const options = { env: { SERVICE: "by-server" } };
  const one = await addServer(belay, "by-1", options);
  await addServer(belay, "by-2", options);
  await until("both are reachable", async () => {
    const replies = await Promise.all(
      ["by-1", "by-2"].map((id) => belay.get({ path: `/at/${id}/x`, headers: host })),
    );
    return replies.every(({ status }) => status === 200);
  });
  for (const id of ["by-1", "by-2", "by-1"]) {
    const answer = parseAnswer(await belay.get({ path: `/at/${id}/x?q=1`, headers: host }));
    assert.deepEqual([answer.server, answer.path], [id, "/x?q=1"]);
  }
  const balanced = new Set<string>();
  for (let index = 0; index < 20; index += 1) {
    balanced.add(parseAnswer(await belay.get({ path: "/x", headers: host })).server);
  }
  assert.equal(balanced.size, 2, "without an id requests are balanced");
  const unknown = await belay.get({ path: "/at/never-there/x", headers: host });
  assert.deepEqual([unknown.status, unknown.headers["x-belay-reason"]], [404, "server-unknown"]);
  await one.stop();
  await gone(belay, "by-1");
  await until("the edge knows that it is gone", async () => {
    const reply = await belay.get({ path: "/at/by-1/x", headers: host });
    return reply.status === 503 && reply.headers["x-belay-reason"] === "server-gone";
  });
});

test("C3 C4: 200 fresh keys, 7 requests each at once over two edges: one server a key, 200 placements", async () => {
  const second = await belay.startEdge();
  const placed = async (): Promise<number> => {
    const counts = await Promise.all(
      [0, 1].map((edge) => belay.metric("envoy_belay_placed", "", edge)),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  };
  await until(
    "the second edge routes",
    async () => (await belay.get({ path: "/s/ann/" }, second)).status === 200,
  );
  const placedBefore = await placed();
  const keys = Array.from({ length: 200 }, (_, index) => `fresh-${index}`);
  const shots = keys.flatMap((key) => Array.from({ length: 7 }, (_, index) => ({ key, index })));
  const replies = await Promise.all(
    shots.map(async ({ key, index }) => {
      const port = index % 2 === 0 ? belay.ports.edge : second;
      const reply = await belay.get({ path: `/s/${key}/` }, port);
      assert.equal(reply.status, 200, reply.body);
      return parseAnswer(reply);
    }),
  );
  for (const [key, answers] of Map.groupBy(replies, (answer) => answer.key)) {
    assert.equal(answers.length, 7);
    assert.equal(new Set(answers.map(({ server, epoch }) => `${server}@${epoch}`)).size, 1, key);
  }
  await until("all placements are counted", async () => (await placed()) - placedBefore >= 200);
  assert.equal((await placed()) - placedBefore, 200);
});

test("nothing that the servers wrote down breaks single ownership", () => {
  const runs = readRuns(recordOf(belay));
  assert.ok(runs.length > 2_000);
  assert.deepEqual(findBreaches(runs), []);
});
