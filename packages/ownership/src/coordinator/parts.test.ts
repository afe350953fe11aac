import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { choose } from "../placement/choose.ts";
import { Placement } from "@belay/protocol";
import { waitMs } from "../wait.ts";
import { DueQueue } from "./due-queue.ts";
import { Feed } from "./feed.ts";
import { compareKeys } from "./key-order.ts";
import { SERVER_TABLE, SHARD_TABLE } from "./transitions.ts";

test("H17 W(x): a holder with the slowest clock is over before a waiter with the fastest", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 86_400_000 }),
      fc.double({ min: 0, max: 0.01, noNaN: true }),
      (x, rho) => {
        const holderMs = x / (1 - rho);
        const waiterMs = waitMs(x, 200, 0.01) / (1 + rho);
        assert.ok(waiterMs > holderMs);
      },
    ),
    { numRuns: 200 },
  );
});

test("what is due comes out in order of time, and only what is due", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 60 }),
      fc.integer({ min: 0, max: 50 }),
      (times, now) => {
        const queue = new DueQueue();
        const ran: number[] = [];
        for (const at of times) queue.add(at, () => ran.push(at));
        for (let run = queue.take(now); run !== undefined; run = queue.take(now)) run();
        const expected = times.filter((at) => at <= now).toSorted((a, b) => a - b);
        assert.deepEqual(ran, expected);
        assert.equal(queue.size, times.length - expected.length);
      },
    ),
    { numRuns: 200 },
  );
});

test("keys are ordered as their UTF-8 bytes are", () => {
  const key = fc.string({ unit: "binary", minLength: 0, maxLength: 6 });
  const encoder = new TextEncoder();
  const byBytes = (a: string, b: string): number => {
    const [left, right] = [encoder.encode(a), encoder.encode(b)];
    const index = left.findIndex((byte, at) => byte !== right[at]);
    if (index < 0) return Math.sign(left.length - right.length);
    return Math.sign((left[index] ?? 0) - (right[index] ?? -1));
  };
  fc.assert(
    fc.property(key, key, (a, b) => {
      assert.equal(Math.sign(compareKeys(a, b)), byBytes(a, b));
    }),
    { numRuns: 300 },
  );
});

test("F1 a reader resumes after any revision that is kept, in order, and not before", () => {
  const entry = { entry: { case: "serviceRemoved", value: { name: "x" } } } as const;
  const feed = new Feed(10n, 20n, 3);
  for (const revision of [21n, 23n, 26n, 30n]) feed.append(revision, [entry], Number(revision));
  assert.deepEqual(
    feed.since(23n, 10)?.map((batch) => batch.revision),
    [26n, 30n],
  );
  assert.deepEqual(
    feed.since(21n, 10)?.map((batch) => batch.revision),
    [23n, 26n, 30n],
  );
  assert.equal(feed.since(10n, 10), undefined, "the oldest was let go");
  assert.equal(feed.since(21n, 2), undefined, "F2: too much, a snapshot is shorter");
  assert.equal(feed.publishedBy(26), 26n);
  assert.equal(feed.publishedBy(5), 0n);
});

test("A2 the policies: pack fills, spread goes over zones, rendezvous is stable, least-loaded is even", () => {
  const server = (serverId: string, zone: string, size: number) => ({
    row: { serverId, zone },
    shards: { size },
    load: undefined,
  });
  const servers = [server("a", "z1", 5), server("b", "z1", 1), server("c", "z2", 2)];
  const wish = { key: "k", zone: "" };
  const chosen = (policy: Placement, zone = ""): string | undefined =>
    choose(policy, servers, { ...wish, zone })?.row.serverId;
  assert.equal(chosen(Placement.LEAST_LOADED), "b");
  assert.equal(chosen(Placement.PACK), "a");
  assert.equal(chosen(Placement.SPREAD), "c");
  assert.equal(chosen(Placement.LEAST_LOADED, "z2"), "c");
  assert.equal(chosen(Placement.LEAST_LOADED, "z9"), "b", "a zone without servers is only a wish");
  const before = chosen(Placement.RENDEZVOUS);
  const fewer = servers.filter((s) => s.row.serverId !== (before === "a" ? "b" : "a"));
  assert.equal(choose(Placement.RENDEZVOUS, fewer, wish)?.row.serverId, before);
});

test("rendezvous spreads keys evenly", () => {
  const servers = ["a", "b", "c"].map((serverId) => ({
    row: { serverId, zone: "" },
    shards: { size: 0 },
    load: undefined,
  }));
  const counts = new Map<string, number>();
  for (let key = 0; key < 3000; key += 1) {
    const server = choose(Placement.RENDEZVOUS, servers, { key: `player-${key}`, zone: "" });
    const id = server?.row.serverId ?? "";
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  assert.ok(Math.max(...counts.values()) <= 1150, JSON.stringify([...counts]));
});

test("the transition tables answer every event in every state alike", () => {
  for (const table of [SHARD_TABLE, SERVER_TABLE]) {
    const rows = Object.values(table).map((row) => Object.keys(row).toSorted());
    for (const row of rows) assert.deepEqual(row, rows[0]);
  }
  // M3: a release that is not current changes nothing.
  assert.equal(SHARD_TABLE.free.release, "acknowledge");
  assert.equal(SHARD_TABLE.orphaned.release, "acknowledge");
});
