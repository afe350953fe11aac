import assert from "node:assert/strict";
import { test } from "node:test";
import { After, type FrameBodyInit, ResolveOutcome } from "@belay/protocol";
import type { FrameOf } from "../frame-init.ts";
import { Actors, CoordinatorBed, MARGIN_MS } from "./coordinator-bed.test.ts";
import { waitMs } from "../wait.ts";

const LEASE_MS = 15_000;

async function world(guarded: boolean): Promise<Actors> {
  const actors = new Actors(await CoordinatorBed.start());
  actors.define({ name: "world", leaseMs: LEASE_MS, guarded, drainMs: 10_000 });
  return actors;
}

const two = (actors: Actors) => ({
  a: actors.server("a", { guarded: true }),
  b: actors.server("b", { guarded: true }),
});

function move(actors: Actors, key: string, toServerId = ""): FrameOf<"answer"> {
  const question:
    | FrameOf<"ask">["question"]
    | { case: "move"; value: { service: string; key: string; toServerId: string } } = {
    case: "move",
    value: { service: "world", key, toServerId },
  };
  const frame: FrameBodyInit = { case: "ask", value: { requestId: 1, question } };
  actors.bed.send(actors.controlPlane, frame);
  return actors.bed.got(actors.controlPlane, "answer");
}

function release(
  actors: Actors,
  server: { peer: number; incarnation: bigint },
  epoch: bigint,
): void {
  actors.bed.send(server.peer, {
    case: "release",
    value: { incarnation: server.incarnation, shards: [{ key: "k", epoch }] },
  });
}

const entriesOf = (actors: Actors, peer: number) =>
  actors.bed.takeAll(peer, "feedBatch").flatMap(({ entries }) => entries.map(({ entry }) => entry));

test("M1 M2 M3 M4 a guarded move: moving, revoke when dropped, release and assignment in one commit", async () => {
  const actors = await world(true);
  const { a, b } = two(actors);
  const proxy = actors.proxy();
  const { epoch, incarnation } = actors.resolve(proxy, "k");
  const [from, to] = incarnation === a.incarnation ? [a, b] : [b, a];
  actors.bed.clear(proxy);
  assert.equal(move(actors, "k").problemCode, "");
  const [moving] = entriesOf(actors, proxy);
  assert.equal(moving?.case, "shardMoving");
  assert.equal(actors.resolve(proxy, "k").outcome, ResolveOutcome.MOVING);
  // Not before the proxy has dropped it, nor 100 ms have passed.
  assert.equal(actors.bed.take(from.peer, "revoke"), undefined);
  actors.renewFeed(proxy);
  const revoke = actors.bed.got(from.peer, "revoke");
  assert.deepEqual(
    revoke.shards.map((s) => [s.key, s.epoch]),
    [["k", epoch]],
  );
  const before = actors.bed.commits.length;
  release(actors, from, epoch);
  assert.equal(actors.bed.commits.length, before + 1);
  const [owner] = entriesOf(actors, proxy);
  assert.ok(owner?.case === "shardOwner");
  assert.equal(owner.value.incarnation, to.incarnation);
  assert.equal(owner.value.after, After.RELEASED);
  assert.ok(owner.value.epoch > epoch, "I3");
  assert.equal(actors.bed.got(from.peer, "releaseAck").shards[0]?.epoch, epoch);
  assert.equal(actors.bed.got(to.peer, "grant").shards[0]?.epoch, owner.value.epoch);
});

test("M2 a proxy that does not acknowledge holds the revoke back for 100 ms, no longer", async () => {
  const actors = await world(true);
  const { a, b } = two(actors);
  const proxy = actors.proxy();
  const { incarnation } = actors.resolve(proxy, "k");
  const from = incarnation === a.incarnation ? a : b;
  move(actors, "k");
  actors.bed.advance(99);
  assert.equal(actors.bed.take(from.peer, "revoke"), undefined);
  actors.bed.advance(2);
  actors.bed.got(from.peer, "revoke");
});

test("M4 an unguarded move waits for every live proxy to be quiet", async () => {
  const actors = await world(false);
  const { a, b } = two(actors);
  const proxies = [actors.proxy(), actors.proxy()];
  const [first = 0, second = 0] = proxies;
  const { epoch, incarnation } = actors.resolve(first, "k");
  const from = incarnation === a.incarnation ? a : b;
  move(actors, "k");
  for (const proxy of proxies) actors.renewFeed(proxy);
  release(actors, from, epoch);
  const quiet = { service: "world", key: "k", epoch, incarnation };
  actors.bed.send(first, { case: "quiet", value: quiet });
  assert.equal(actors.resolve(first, "k").outcome, ResolveOutcome.MOVING);
  // M3: not acknowledged before the commit that takes it.
  assert.equal(actors.bed.take(from.peer, "releaseAck"), undefined);
  actors.bed.send(second, { case: "quiet", value: quiet });
  const moved = actors.resolve(first, "k");
  assert.equal(moved.outcome, ResolveOutcome.OWNER);
  assert.notEqual(moved.incarnation, incarnation);
  actors.bed.got(from.peer, "releaseAck");
});

test("M4 P7 a proxy that has died holds an unguarded move back for W(F) since its last renewal", async () => {
  const actors = await world(false);
  const { a, b } = two(actors);
  const proxy = actors.proxy();
  const { epoch, incarnation } = actors.resolve(proxy, "k");
  const from = incarnation === a.incarnation ? a : b;
  actors.bed.disconnect(proxy);
  move(actors, "k");
  release(actors, from, epoch);
  const other = actors.bed.connect(1);
  for (let waited = 0; waited < waitMs(LEASE_MS, MARGIN_MS) - 1000; waited += 4000) {
    actors.bed.advance(4000);
    for (const server of [a, b]) actors.renew(server);
    const expected = waited + 4000 < waitMs(LEASE_MS, MARGIN_MS) ? 2 : 1;
    assert.equal(actors.resolve(other, "k").outcome, expected);
  }
});

test("M3 a release is refused unless it is current, and is acknowledged all the same", async () => {
  const actors = await world(true);
  const { a, b } = two(actors);
  const proxy = actors.proxy();
  const { epoch, incarnation } = actors.resolve(proxy, "k");
  const [from, other] = incarnation === a.incarnation ? [a, b] : [b, a];
  release(actors, other, epoch);
  release(actors, from, epoch - 1n);
  actors.bed.got(other.peer, "releaseAck");
  actors.bed.got(from.peer, "releaseAck");
  const after = actors.resolve(proxy, "k");
  assert.equal(after.incarnation, incarnation);
  assert.equal(after.epoch, epoch);
});

test("A5 an unasked release frees the shard: row gone, ShardFree published", async () => {
  const actors = await world(true);
  const { a } = two(actors);
  const proxy = actors.proxy();
  const { epoch, incarnation } = actors.resolve(proxy, "k");
  const from = incarnation === a.incarnation ? a : { peer: 0, incarnation: 0n };
  actors.bed.clear(proxy);
  release(actors, from, epoch);
  const [free] = entriesOf(actors, proxy);
  assert.equal(free?.case, "shardFree");
  assert.equal(
    actors.bed.store.rows().some((row) => row.table === "shard"),
    false,
  );
  const again = actors.resolve(proxy, "k");
  assert.ok(again.epoch > epoch, "I3 also across a delete");
});

test("A5 an idle shard's owner is asked; busy keeps it, a touch keeps it", async () => {
  const actors = new Actors(await CoordinatorBed.start());
  actors.define({ name: "world", leaseMs: 3_600_000, guarded: true, idleMs: 60_000 });
  const a = actors.server("a");
  const proxy = actors.proxy();
  const { epoch } = actors.resolve(proxy, "k");
  actors.bed.advance(40_000);
  actors.resolve(proxy, "k");
  actors.bed.advance(40_000);
  assert.equal(actors.bed.take(a.peer, "askRelease"), undefined);
  actors.bed.advance(25_000);
  const asked = actors.bed.got(a.peer, "askRelease");
  actors.bed.send(a.peer, {
    case: "busy",
    value: { incarnation: a.incarnation, shards: asked.shards },
  });
  actors.bed.advance(55_000);
  assert.equal(actors.bed.take(a.peer, "askRelease"), undefined);
  actors.bed.advance(20_000);
  actors.bed.got(a.peer, "askRelease");
  release(actors, a, epoch);
  assert.equal(actors.bed.machine.stats().shards, 0);
});

test("M6 a drain moves shards at a bounded rate, tells its progress, and ends with nothing owned", async () => {
  const actors = new Actors(await CoordinatorBed.start());
  actors.define({ name: "world", leaseMs: 60_000, guarded: true, movesPerSecond: 20 });
  const a = actors.server("a");
  const proxy = actors.proxy();
  for (let key = 0; key < 10; key += 1) actors.resolve(proxy, `key-${key}`);
  const b = actors.server("b");
  actors.bed.send(a.peer, { case: "startDrain", value: { incarnation: a.incarnation } });
  assert.equal(actors.bed.got(a.peer, "drainProgress").remaining, 10);
  let steps = 0;
  let remaining = 10;
  for (; remaining > 0 && steps < 100; steps += 1) {
    actors.bed.advance(50);
    actors.renewFeed(proxy);
    for (const { shards } of actors.bed.takeAll(a.peer, "revoke")) {
      actors.bed.send(a.peer, { case: "release", value: { incarnation: a.incarnation, shards } });
    }
    for (const progress of actors.bed.takeAll(a.peer, "drainProgress"))
      remaining = progress.remaining;
  }
  assert.equal(remaining, 0);
  assert.ok(steps >= 8, `10 moves at 20 a second took ${steps * 50} ms`);
  assert.equal(actors.resolve(proxy, "key-3").incarnation, b.incarnation);
  assert.equal(actors.resolve(proxy, "new").incarnation, b.incarnation, "A2 only active");
});

test("M6 with no active server left, shards are released to nobody", async () => {
  const actors = await world(true);
  const a = actors.server("a");
  const proxy = actors.proxy();
  const { epoch } = actors.resolve(proxy, "k");
  actors.bed.send(a.peer, { case: "startDrain", value: { incarnation: a.incarnation } });
  actors.bed.advance(200);
  actors.bed.got(a.peer, "revoke");
  release(actors, a, epoch);
  assert.equal(actors.resolve(proxy, "k").outcome, ResolveOutcome.NO_SERVER);
});

test("moves are refused with a reason: unowned, under way, to itself, to a stranger", async () => {
  const actors = await world(true);
  const { a } = two(actors);
  const proxy = actors.proxy();
  assert.equal(move(actors, "k").problemCode, "key-unowned");
  const { incarnation } = actors.resolve(proxy, "k");
  const own = incarnation === a.incarnation ? "a" : "b";
  assert.equal(move(actors, "k", own).problemCode, "already-there");
  assert.equal(move(actors, "k", "nobody").problemCode, "server-unknown");
  assert.equal(move(actors, "k").problemCode, "");
  assert.equal(move(actors, "k").problemCode, "key-moving");
});
