import assert from "node:assert/strict";
import { test } from "node:test";
import { type FrameBodyInit, MintOutcome, ResolveOutcome } from "@belay/protocol";
import { Actors, CoordinatorBed } from "./coordinator-bed.test.ts";

const start = async (): Promise<Actors> => new Actors(await CoordinatorBed.start());

type Spec = NonNullable<
  Extract<FrameBodyInit, { case: "defineServices" }>["value"]["services"]
>[number];

function define(actors: Actors, services: Spec[], removed: string[] = []): void {
  actors.bed.send(actors.controlPlane, {
    case: "defineServices",
    value: { requestId: 1, services, removed },
  });
}

test("definitions are idempotent: the same again writes nothing", async () => {
  const actors = await start();
  define(actors, [{ name: "world", leaseMs: 3000 }]);
  const before = actors.bed.commits.length;
  define(actors, [{ name: "world", leaseMs: 3000 }]);
  assert.equal(actors.bed.commits.length, before);
  assert.equal(actors.bed.takeAll(actors.controlPlane, "servicesDefined").length, 2);
});

test("a definition that cannot be is refused by name, and nothing of the request is done", async () => {
  const actors = await start();
  const refusals: [string, Spec][] = [
    ["bad-service", { name: "Bad Name" }],
    ["bad-service", { name: "x", leaseMs: 10 }],
    ["bad-service", { name: "x", leaseMs: 3000, feedLeaseMs: 4000 }],
  ];
  for (const [code, spec] of refusals) {
    define(actors, [{ name: "good" }, spec]);
    assert.equal(actors.bed.got(actors.controlPlane, "problem").code, code);
  }
  assert.equal(actors.bed.machine.stats().services, 0);
});

test("H17 F lowered counts for waits only after W(old), F raised at once; L is fixed for an incarnation", async () => {
  const actors = await start();
  const { bed } = actors;
  const row = () => {
    const found = bed.store.rows().find((candidate) => candidate.table === "service");
    assert.ok(found?.table === "service");
    return [found.feedLeaseMs, found.waitFeedLeaseMs];
  };
  define(actors, [{ name: "world", leaseMs: 10_000, guarded: true }]);
  const a = actors.server("a");
  define(actors, [{ name: "world", leaseMs: 5000, guarded: true }]);
  assert.deepEqual(row(), [5000, 10_000]);
  bed.advance(10_000);
  assert.deepEqual(row(), [5000, 10_000]);
  assert.equal(bed.take(a.peer, "serverExpired"), undefined, "it registered with L = 10 s");
  bed.advance(500);
  assert.deepEqual(row(), [5000, 5000]);
  define(actors, [{ name: "world", leaseMs: 20_000, guarded: true }]);
  assert.deepEqual(row(), [20_000, 20_000]);
});

test("M4 the guard of a service does not change under its servers", async () => {
  const actors = await start();
  define(actors, [{ name: "world", guarded: true }]);
  actors.server("a");
  define(actors, [{ name: "world", guarded: false }]);
  assert.equal(actors.bed.got(actors.controlPlane, "problem").code, "guard-change");
});

test("a removed service takes nothing new and goes, with its rows, when its servers are gone", async () => {
  const actors = await start();
  define(actors, [{ name: "world", guarded: true }]);
  const a = actors.server("a");
  const proxy = actors.proxy();
  actors.resolve(proxy, "k");
  define(actors, [], ["world"]);
  assert.equal(actors.resolve(proxy, "k").outcome, ResolveOutcome.SERVICE_UNKNOWN);
  actors.bed.advance(1500);
  assert.equal(actors.bed.machine.stats().services, 1);
  const leave = { incarnation: a.incarnation, secret: a.secret };
  actors.bed.send(a.peer, { case: "leave", value: leave });
  actors.bed.advance(1500);
  assert.equal(actors.bed.machine.stats().services, 0);
  assert.deepEqual(actors.bed.store.rows(), []);
});

test("A7 a minted key belongs to who made it, is never placed, and conflicts are told", async () => {
  const actors = await start();
  define(actors, [{ name: "world", guarded: true, minted: true }]);
  const a = actors.server("a");
  const b = actors.server("b");
  const proxy = actors.proxy();
  assert.equal(actors.resolve(proxy, "s1").outcome, ResolveOutcome.UNKNOWN_KEY);
  assert.equal(actors.bed.machine.stats().shards, 0);
  const mint = (incarnation: bigint) => {
    const value = { requestId: 1, service: "world", key: "s1", incarnation };
    actors.bed.send(proxy, { case: "mint", value });
    return actors.bed.got(proxy, "minted");
  };
  const first = mint(a.incarnation);
  assert.equal(first.outcome, MintOutcome.OK);
  assert.equal(mint(a.incarnation).epoch, first.epoch, "said again it is the same");
  assert.equal(mint(b.incarnation).outcome, MintOutcome.CONFLICT);
  assert.equal(mint(3n).outcome, MintOutcome.SERVER_GONE);
  assert.equal(actors.resolve(proxy, "s1").incarnation, a.incarnation);
  actors.bed.send(a.peer, { case: "startDrain", value: { incarnation: a.incarnation } });
  actors.bed.advance(2000);
  assert.equal(actors.bed.take(a.peer, "revoke"), undefined, "a drain does not move it");
  const leave = { incarnation: a.incarnation, secret: a.secret };
  actors.bed.send(a.peer, { case: "leave", value: leave });
  assert.equal(actors.resolve(proxy, "s1").outcome, ResolveOutcome.UNKNOWN_KEY);
});

test("shards are told in pages, in the byte order of their keys", async () => {
  const actors = await start();
  define(actors, [{ name: "world", guarded: true }]);
  actors.server("a");
  const proxy = actors.proxy();
  for (const key of ["b", "ä", "a", "🎮", "\uFFFD", "c"]) actors.resolve(proxy, key);
  const page = (afterKey: string) => {
    const value = { service: "world", serverId: "", afterKey, limit: 4 };
    actors.bed.send(actors.controlPlane, {
      case: "ask",
      value: { requestId: 2, question: { case: "shards", value } },
    });
    const { answer } = actors.bed.got(actors.controlPlane, "answer");
    assert.ok(answer.case === "shards");
    return answer.value;
  };
  const first = page("");
  assert.deepEqual(
    first.shards.map(({ key }) => key),
    ["a", "b", "c", "ä"],
  );
  assert.equal(first.more, true);
  const second = page("ä");
  assert.deepEqual(
    second.shards.map(({ key }) => key),
    ["\uFFFD", "🎮"],
  );
  assert.equal(second.more, false);
});
