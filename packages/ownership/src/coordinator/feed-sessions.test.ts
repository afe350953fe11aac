import assert from "node:assert/strict";
import { test } from "node:test";
import { Role } from "@belay/protocol";
import { Actors, CoordinatorBed } from "./coordinator-bed.test.ts";

const LEASE_MS = 15_000;

async function world(limits = {}): Promise<Actors> {
  const actors = new Actors(await CoordinatorBed.start({ limits }));
  actors.define({ name: "world", leaseMs: LEASE_MS, guarded: true });
  return actors;
}

const casesOf = (batch: { entries: { entry: { case?: string | undefined } }[] }) =>
  batch.entries.map(({ entry }) => entry.case);

test("F1 a new reader gets a snapshot with a completeness marker, in parts of bounded size", async () => {
  const actors = await world({ entriesPerBatch: 2 });
  for (const id of ["a", "b", "c"]) actors.server(id);
  const gone = actors.server("gone");
  const leave = { incarnation: gone.incarnation, secret: gone.secret };
  actors.bed.send(gone.peer, { case: "leave", value: leave });
  const proxy = actors.bed.connect(Role.PROXY);
  const parts = actors.bed.takeAll(proxy, "feedBatch");
  assert.deepEqual(
    parts.map((part) => part.complete),
    [false, false, true],
  );
  assert.ok(parts.every((part) => part.snapshot && part.revision === parts[0]?.revision));
  const cases = parts.flatMap((part) => casesOf(part));
  assert.deepEqual(cases, ["service", "serverEnded", "server", "server", "server"]);
});

test("F1 P2 a reader that comes back gets what it has missed, chained from the revision it names", async () => {
  const actors = await world();
  const { bed } = actors;
  const a = actors.server("a");
  const proxy = actors.proxy();
  const [snapshot] = bed.takeAll(proxy, "feedBatch");
  const generation = bed.got(proxy, "welcome").generation;
  bed.disconnect(proxy);
  actors.server("b");
  actors.resolve(actors.proxy(), "k");
  const again = bed.connect(Role.PROXY, { generation, revision: snapshot?.revision ?? 0n });
  const batches = bed.takeAll(again, "feedBatch");
  assert.ok(batches.every((batch) => !batch.snapshot));
  assert.equal(batches[0]?.previous, snapshot?.revision);
  for (const [index, batch] of batches.slice(1).entries()) {
    assert.equal(batch.previous, batches[index]?.revision);
  }
  assert.equal(batches.at(-1)?.complete, true);
  assert.deepEqual(
    batches.flatMap((batch) => casesOf(batch)),
    ["server"],
  );
  actors.server("c");
  assert.equal(bed.got(again, "feedBatch").previous, batches.at(-1)?.revision);
  assert.ok(a.incarnation > 0n);
});

test("F1 after a restart a reader that has missed nothing needs no snapshot", async () => {
  const actors = await world();
  const { bed } = actors;
  actors.server("a");
  const proxy = actors.proxy();
  const { generation } = bed.got(proxy, "welcome");
  const { revision } = bed.machine.stats();
  await bed.restart();
  const again = bed.connect(Role.PROXY, { generation, revision });
  const [batch] = bed.takeAll(again, "feedBatch");
  assert.equal(batch?.snapshot, false);
  assert.equal(batch?.previous, revision);
  assert.equal(batch?.complete, true);
  const late = bed.connect(Role.PROXY, { generation, revision: revision - 1n });
  assert.equal(bed.takeAll(late, "feedBatch")[0]?.snapshot, true);
});

test("P8 a feed lease is not renewed while what is old enough is not acknowledged, and then is", async () => {
  const actors = await world();
  const { bed } = actors;
  const proxy = actors.proxy();
  const { feedRevision } = bed.machine.stats();
  actors.server("a");
  const renew = (dropped: bigint): void =>
    bed.send(proxy, { case: "renewFeedLease", value: { nonce: 5, dropped } });
  renew(feedRevision);
  assert.equal(bed.got(proxy, "feedLease").nonce, 5, "published just now: not owed yet");
  bed.advance(LEASE_MS / 3);
  renew(feedRevision);
  assert.equal(bed.take(proxy, "feedLease"), undefined);
  bed.send(proxy, { case: "dropped", value: { revision: bed.machine.stats().feedRevision } });
  assert.equal(bed.got(proxy, "feedLease").revision, bed.machine.stats().feedRevision);
});

test("P7 a second connection of a process takes the first one's place", async () => {
  const actors = await world();
  const processId = new Uint8Array(16).fill(9);
  const first = actors.proxy({ processId });
  const second = actors.proxy({ processId });
  assert.ok(actors.bed.closed.includes(first));
  assert.ok(!actors.bed.closed.includes(second));
  assert.equal(actors.bed.machine.stats().proxies, 1);
});

test("a Hello that cannot be is refused with its reason", async () => {
  const { bed } = await world();
  const refusals: [string, Partial<Parameters<CoordinatorBed["connect"]>[1]> & object][] = [
    ["bad-frame", { processId: new Uint8Array(3) }],
    ["deposed", { generation: bed.meta?.generation ?? new Uint8Array(0), term: 99n }],
  ];
  for (const [code, hello] of refusals) {
    const peer = bed.connect(Role.PROXY, hello);
    assert.equal(bed.got(peer, "problem").code, code);
    assert.ok(bed.closed.includes(peer));
  }
  const stranger = bed.connect(Role.UNSPECIFIED);
  assert.equal(bed.got(stranger, "problem").code, "role-unknown");
});

test("T3 an unknown outcome: nothing is answered, the same batch again until it is decided", async () => {
  const actors = await world();
  const { bed } = actors;
  actors.server("a");
  const proxy = actors.proxy();
  bed.autoCommit = false;
  actors.askFor(proxy, "k");
  const batch = bed.commits.at(-1);
  bed.commit({ outcome: "unknown", message: "?" });
  assert.equal(bed.take(proxy, "resolved"), undefined);
  assert.equal(bed.commitWaits, false);
  bed.advance(60);
  assert.equal(bed.commits.at(-1), batch);
  bed.commit();
  bed.got(proxy, "resolved");
});

test("T3 undecided for L/3, T1 deposed: the process has to end, and nothing more is sent", async () => {
  for (const outcome of [
    { outcome: "unknown", message: "?" },
    { outcome: "deposed", term: 9n },
  ] as const) {
    const actors = await world();
    const { bed } = actors;
    actors.server("a");
    const proxy = actors.proxy();
    bed.autoCommit = false;
    actors.askFor(proxy, "k");
    for (let waited = 0; waited < LEASE_MS && bed.exit === undefined; waited += 60) {
      bed.advance(60);
      if (bed.commitWaits) bed.commit(outcome);
    }
    assert.equal(bed.exit?.code, outcome.outcome === "deposed" ? "deposed" : "undecided");
    assert.equal(bed.take(proxy, "resolved"), undefined);
  }
});
