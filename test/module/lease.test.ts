import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ResolveOutcome } from "@belay/protocol";
import { until } from "@belay/testkit";
import { EdgeUnderTest } from "./edge-under-test.ts";
import { FakeServer } from "./fake-server.ts";

const route = {
  prefix: "/",
  config: { keys: [{ from: "path", template: "/s/{key}" }], park_ms: 2000 },
};
const [guarded, plain] = [new FakeServer("guarded"), new FakeServer("plain")];
let edge: EdgeUnderTest;
const options = {
  cold: true,
  services: [
    {
      name: "world",
      guarded: true,
      leaseMs: 3000,
      servers: [guarded],
      routes: [{ ...route, host: "world" }],
    },
    {
      name: "docs",
      guarded: false,
      leaseMs: 3000,
      servers: [plain],
      routes: [{ ...route, host: "docs", timeout: "0s" }],
    },
  ],
};
before(async () => {
  edge = await EdgeUnderTest.start(options);
});
after(async () => edge.stop());

const world = { headers: { host: "world" } };
const docs = { headers: { host: "docs" } };

test("F1 the gate opens with the first complete snapshot", async () => {
  await edge.ready();
  edge.registerAll(options);
  await until("the feed is applied", async () => (await edge.ask("/s/p1/x", world)).status === 200);
});

test("outcomes without an owner have their code and Retry-After", async () => {
  for (const [outcome, status, reason] of [
    [ResolveOutcome.NO_SERVER, 503, "no-server"],
    [ResolveOutcome.FULL, 503, "full"],
  ] as const) {
    edge.coordinator.refuse = outcome;
    const answer = await edge.ask(`/s/${reason}/x`, world);
    edge.coordinator.refuse = undefined;
    assert.deepEqual([answer.status, answer.headers["x-belay-reason"]], [status, reason]);
    assert.equal(answer.headers["retry-after"], "1");
  }
});

test("a coordinator that answers no resolve: 503 coordinator-silent at the end of the park time", async () => {
  edge.coordinator.deaf = true;
  const answer = await edge.ask("/s/nobody/x", world);
  edge.coordinator.deaf = false;
  assert.deepEqual([answer.status, answer.headers["x-belay-reason"]], [503, "coordinator-silent"]);
});

test("P1 known keys flow while the lease lives, then 503 lease-over; sockets and requests to unguarded servers end", async () => {
  await until("docs is known", async () => (await edge.ask("/s/d1/x", docs)).status === 200);
  const socket = await edge.socket("/s/d2/x", { host: "docs" });
  assert.equal(await socket.ask("hi"), "plain:hi");
  const held: object[] = [];
  plain.answer = (_request, response) => held.push(response);
  const running = edge.ask("/s/d1/x", docs);
  await until("it runs", () => held.length > 0);
  edge.coordinator.silent = true;
  assert.equal((await edge.ask("/s/p1/x", world)).status, 200);
  const over = await until("the lease is over", async () => {
    const answer = await edge.ask("/s/p1/x", world);
    return answer.status === 503 && answer;
  });
  assert.equal(over.headers["x-belay-reason"], "lease-over");
  assert.equal(over.headers["retry-after"], "1");
  const cut = await running;
  assert.deepEqual([cut.status, cut.headers["x-belay-reason"]], [503, "lease-over"]);
  await socket.end();
  plain.answer = undefined;
  edge.coordinator.silent = false;
  await until("it flows again", async () => (await edge.ask("/s/p1/x", world)).status === 200);
});

test("P2 a cut connection comes back with a snapshot, and requests go on", async () => {
  const hellos = (): number =>
    edge.coordinator.frames.filter((frame) => frame.case === "hello").length;
  const earlier = hellos();
  edge.coordinator.cut();
  assert.equal((await edge.ask("/s/p1/x", world)).status, 200);
  await until("it is back", () => hellos() > earlier && edge.coordinator.connected);
  await until(
    "new keys are placed",
    async () => (await edge.ask("/s/fresh/x", world)).status === 200,
  );
});

test("A4 the hosts that all workers hold are reported", () => {
  const reports = edge.coordinator.frames.filter((frame) => frame.case === "hosts");
  const last = reports.findLast(
    (frame) => frame.case === "hosts" && frame.value.service === "world",
  );
  assert.deepEqual(last?.case === "hosts" ? last.value.addresses : undefined, [guarded.address]);
});
