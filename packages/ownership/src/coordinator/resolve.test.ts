import assert from "node:assert/strict";
import { test } from "node:test";
import { ResolveOutcome, Role } from "@belay/protocol";
import { Actors, CoordinatorBed } from "./coordinator-bed.test.ts";

async function world(guarded = true): Promise<Actors> {
  const actors = new Actors(await CoordinatorBed.start());
  actors.define({ name: "world", leaseMs: 15_000, guarded, drainMs: 10_000 });
  return actors;
}

test("A1 a free shard is placed, its owner gets the grant, the next resolve says the same", async () => {
  const actors = await world();
  const server = actors.server("a");
  const proxy = actors.proxy();
  const first = actors.resolve(proxy, "k");
  assert.equal(first.outcome, ResolveOutcome.OWNER);
  assert.equal(first.incarnation, server.incarnation);
  assert.equal(first.placed, true);
  const grant = actors.bed.got(server.peer, "grant");
  assert.deepEqual(
    grant.shards.map(({ key, epoch }) => [key, epoch]),
    [["k", first.epoch]],
  );
  const second = actors.resolve(proxy, "k");
  assert.equal(second.epoch, first.epoch);
  assert.equal(second.placed, false);
});

test("A1 concurrent resolves of one shard share one commit and one placement", async () => {
  const actors = await world();
  actors.server("a");
  actors.server("b");
  const proxies = [actors.proxy(), actors.proxy()];
  const before = actors.bed.commits.length;
  for (let count = 0; count < 7; count += 1) {
    for (const proxy of proxies) {
      actors.bed.sendLater(proxy, {
        case: "resolve",
        value: { requestId: count + 1, service: "world", key: "k" },
      });
    }
  }
  actors.bed.settle();
  assert.equal(actors.bed.commits.length, before + 1);
  const answers = proxies.flatMap((proxy) => actors.bed.takeAll(proxy, "resolved"));
  assert.equal(answers.length, 14);
  assert.equal(new Set(answers.map(({ epoch }) => epoch)).size, 1);
  assert.equal(answers.filter(({ placed }) => placed).length, 1);
});

test("T2 nothing is answered before its commit, and what waits is staged in one batch", async () => {
  const actors = await world();
  const server = actors.server("a");
  const proxy = actors.proxy();
  const { bed } = actors;
  bed.autoCommit = false;
  actors.askFor(proxy, "k1");
  actors.askFor(proxy, "k2");
  actors.askFor(proxy, "k3");
  assert.equal(bed.take(proxy, "resolved"), undefined);
  assert.equal(bed.take(server.peer, "grant"), undefined);
  const before = bed.commits.length;
  bed.commit();
  assert.equal(bed.takeAll(proxy, "resolved").length, 1);
  bed.commit();
  assert.equal(bed.takeAll(proxy, "resolved").length, 2);
  assert.equal(bed.commits.length, before + 1);
  assert.equal(bed.commitWaits, false);
});

test("A3 nobody can take it: no-server and full are distinct, and nothing is written", async () => {
  const actors = await world();
  const proxy = actors.proxy();
  assert.equal(actors.resolve(proxy, "k").outcome, ResolveOutcome.NO_SERVER);
  actors.server("a", { capacity: 1 });
  assert.equal(actors.resolve(proxy, "k").outcome, ResolveOutcome.OWNER);
  const before = actors.bed.commits.length;
  assert.equal(actors.resolve(proxy, "k2").outcome, ResolveOutcome.FULL);
  assert.equal(actors.bed.commits.length, before);
});

test("A2 1,000 keys at once over 3 servers: max/mean ≤ 1.25", async () => {
  const actors = await world();
  const servers = ["a", "b", "c"].map((id) => actors.server(id));
  const proxy = actors.proxy();
  for (let key = 0; key < 1000; key += 1) {
    actors.bed.sendLater(proxy, {
      case: "resolve",
      value: { requestId: key + 1, service: "world", key: `key-${key}` },
    });
  }
  actors.bed.settle();
  const counts = servers.map(
    ({ incarnation }) =>
      actors.bed
        .inbox(proxy)
        .filter((f) => f.case === "resolved" && f.value.incarnation === incarnation).length,
  );
  assert.equal(
    counts.reduce((a, b) => a + b, 0),
    1000,
  );
  assert.ok(Math.max(...counts) / (1000 / 3) <= 1.25, String(counts));
});

test("A4 a server that a reporting proxy cannot reach gets nothing for two seconds", async () => {
  const actors = await world();
  const a = actors.server("a", { address: "10.0.0.1:1001" });
  const proxy = actors.proxy();
  const hosts = { service: "world", addresses: ["10.0.0.1:1001"] };
  actors.bed.send(proxy, { case: "hosts", value: hosts });
  const b = actors.server("b", { address: "10.0.0.2:1002" });
  for (const key of ["1", "2", "3"]) {
    assert.equal(actors.resolve(proxy, key).incarnation, a.incarnation);
  }
  actors.bed.send(proxy, {
    case: "hosts",
    value: { service: "world", addresses: ["10.0.0.1:1001", "10.0.0.2:1002"] },
  });
  assert.equal(actors.resolve(proxy, "4").incarnation, b.incarnation);
});

test("A4 never a deadlock: where no server is reachable, one is chosen after the wait", async () => {
  const actors = await world();
  const proxy = actors.proxy();
  actors.bed.send(proxy, { case: "hosts", value: { service: "world", addresses: [] } });
  const a = actors.server("a");
  assert.equal(actors.resolve(proxy, "k").outcome, ResolveOutcome.NOT_YET);
  actors.bed.advance(2000);
  assert.equal(actors.resolve(proxy, "k").incarnation, a.incarnation);
});

test("R1 a resolve that names a revision not yet committed here is answered not-yet", async () => {
  const actors = await world();
  actors.server("a");
  const proxy = actors.proxy();
  const { revision } = actors.bed.machine.stats();
  actors.bed.send(proxy, {
    case: "resolve",
    value: { requestId: 9, service: "world", key: "k", minRevision: revision + 1n },
  });
  assert.equal(actors.bed.got(proxy, "resolved").outcome, ResolveOutcome.NOT_YET);
});

test("a bad key is refused, an unknown service is told", async () => {
  const actors = await world();
  actors.server("a");
  const proxy = actors.proxy();
  actors.askFor(proxy, "a\u0000b");
  assert.equal(actors.bed.got(proxy, "problem").code, "bad-key");
  actors.bed.send(proxy, { case: "resolve", value: { requestId: 1, service: "x", key: "k" } });
  assert.equal(actors.bed.got(proxy, "resolved").outcome, ResolveOutcome.SERVICE_UNKNOWN);
});

test("a frame that the role may not send ends the connection with bad-frame", async () => {
  const actors = await world();
  const peer = actors.bed.connect(Role.SERVER);
  actors.bed.send(peer, { case: "resolve", value: { requestId: 1, service: "world", key: "k" } });
  const problem = actors.bed.got(peer, "problem");
  assert.equal(problem.code, "bad-frame");
  assert.equal(problem.fatal, true);
  assert.ok(actors.bed.closed.includes(peer));
});
