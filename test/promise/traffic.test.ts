import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BelayUnderTest, OpenLoop, pause, type Reply, SocketFleet, until } from "@belay/testkit";
import { findBreaches, readRuns } from "./record.ts";
import { addServer, parseAnswer, placeKeys, recordOf, servers, worldYaml } from "./world.ts";

// Open-loop traffic and open sockets go on while everything around them changes: no request fails, and no
// socket is cut but those whose key moved, which close with 4421 after the message in hand.
const ratePerSecond = 1_000;
const httpKeys = Array.from({ length: 1_000 }, (_, index) => `player-${index}`);
const socketKeys = Array.from({ length: 200 }, (_, index) => `socket-${index}`);

const yaml = worldYaml.replace("lease: 3s", "lease: 15s");
const other = (status: number): string => `
service: other
hosts: [other.example.com]
key: none
routes:
  - match: { prefix: / }
    respond: { status: ${status} }
`;

let belay: BelayUnderTest;
let load: OpenLoop;
let fleet: SocketFleet;
const startedAt = performance.now();

before(async () => {
  belay = await BelayUnderTest.start({ world: yaml, other: other(200) });
  await Promise.all(["a", "b", "c"].map((id) => addServer(belay, id)));
  await placeKeys(belay, httpKeys);
  fleet = new SocketFleet(socketKeys, (key) => `ws://127.0.0.1:${belay.ports.edge}/s/${key}/`);
  await fleet.allOpen();
  load = new OpenLoop({
    port: belay.ports.edge,
    ratePerSecond,
    next: (index) => {
      const key = httpKeys[(index * 7919) % httpKeys.length] ?? "";
      return index % 10 === 0
        ? { path: `/s/${key}/`, method: "POST", body: "x".repeat(2_000) }
        : { path: `/s/${key}/` };
    },
    isGood: ({ status, body, shot }: Reply) =>
      status === 200 && body.includes(shot.path.split("/")[2] ?? "?"),
  });
});

after(async () => {
  await load.stop();
  await belay.stop();
});

/** A message and the close of its socket may cross for so long; the next message comes after a second. */
const crossingMsMax = 500;

/** Lets traffic flow after a change, and says what it broke. */
async function nothingBroke(
  what: string,
  mayClose: ReadonlySet<string> = new Set(),
): Promise<void> {
  const goodBefore = load.good;
  await until(`traffic flows after: ${what}`, () => load.good > goodBefore + ratePerSecond);
  await fleet.allOpen();
  assert.deepEqual(load.bad.slice(0, 5), [], what);
  assert.deepEqual(fleet.failedToOpen, [], what);
  const cut = fleet.closed.filter(
    ({ key, code, unansweredMs }) =>
      !mayClose.has(key) || code !== 4421 || unansweredMs > crossingMsMax,
  );
  assert.deepEqual(cut, [], what);
  fleet.closed.length = 0;
}

async function shardsOf(server: string): Promise<number> {
  return (await servers(belay)).find(({ id }) => id === server)?.shards ?? 0;
}

test("adding a server moves no key", async () => {
  const held = await Promise.all(["a", "b", "c"].map(shardsOf));
  await addServer(belay, "d");
  await nothingBroke("a server was added");
  assert.deepEqual(await Promise.all(["a", "b", "c"].map(shardsOf)), held);
  assert.equal(await shardsOf("d"), 0);
});

test("M: 100 keys are moved", async () => {
  const moved = [...httpKeys.slice(0, 60), ...socketKeys.slice(0, 40)];
  for (let at = 0; at < moved.length; at += 10) {
    const batch = moved.slice(at, at + 10).map((key) => ({ service: "world", key }));
    await Promise.all(
      batch.map(async (body) => {
        const response = await fetch(`http://127.0.0.1:${belay.ports.api}/v1/moves`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        });
        assert.equal(response.status, 202, await response.text());
      }),
    );
  }
  await until("sockets of moved keys were told", () => fleet.closed.length >= 40);
  await nothingBroke("100 keys were moved", new Set(moved));
});

test("M6: a server is drained", async () => {
  const onA = new Set(
    (await Promise.all(socketKeys.map(async (key) => [key, await owner(key)] as const)))
      .filter(([, server]) => server === "a")
      .map(([key]) => key),
  );
  await belay.ask(["drain", "a"]);
  assert.equal(await shardsOf("a"), 0);
  await nothingBroke("a was drained", onA);
});

async function owner(key: string): Promise<string> {
  const { server } = (await belay.api(`/v1/owner?service=world&key=${key}`)) as { server: string };
  return server;
}

test("the control plane is restarted", async () => {
  await belay.controlPlane?.kill();
  belay.startControlPlane();
  await until("the admin API is back", async () => (await servers(belay)).length === 4);
  await nothingBroke("the control plane was restarted");
});

test("S4 T1: the coordinator is restarted", async () => {
  await belay.coordinator?.kill();
  belay.startCoordinator();
  await until(
    "the coordinator is back",
    async () => {
      const reply = await belay.get({ path: `/s/after-${Math.random()}/` });
      return reply.status === 200;
    },
    40_000,
  );
  await nothingBroke("the coordinator was restarted");
});

test("a changed service file is applied twenty times, an unrelated one twenty times", async () => {
  for (let round = 1; round <= 20; round += 1) {
    belay.writeService("world", yaml.replace("body: ok", `body: ok-${round}`));
    await until(`change ${round} is at the edge`, async () => {
      return (await belay.get({ path: "/healthz" })).body.trim() === `ok-${round}`;
    });
  }
  await nothingBroke("the service file was changed twenty times");
  for (let round = 1; round <= 20; round += 1) {
    belay.writeService("other", other(200 + round));
    await until(`change ${round} is at the edge`, async () => {
      const reply = await belay.get({ path: "/", headers: { host: "other.example.com" } });
      return reply.status === 200 + round;
    });
  }
  await nothingBroke("an unrelated service was changed twenty times");
});

test("at least 60 s of traffic, nothing failed, single ownership kept", async () => {
  await pause(Math.max(0, 60_000 - (performance.now() - startedAt)));
  await load.stop();
  await fleet.stop();
  assert.deepEqual(load.bad.slice(0, 5), []);
  assert.ok(load.good >= 50_000, `${load.good} answers`);
  const seen = fleet.answers;
  assert.ok(seen >= 200 * 40, `${seen} answers over sockets`);
  assert.deepEqual(findBreaches(readRuns(recordOf(belay))), []);
  assert.ok(parseAnswer(await belay.get({ path: "/s/player-1/" })).count > 0);
  assert.equal(await belay.metric("envoy_belay_panics"), 0);
});
