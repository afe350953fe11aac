import assert from "node:assert/strict";
import { test } from "node:test";
import { DeathProof, ResolveOutcome, Role } from "@belay/protocol";
import { waitMs } from "../wait.ts";
import { Actors, CoordinatorBed, MARGIN_MS } from "./coordinator-bed.test.ts";

const LEASE_MS = 15_000;
const W_LEASE_MS = waitMs(LEASE_MS, MARGIN_MS);

async function world(guarded = true): Promise<Actors> {
  const actors = new Actors(await CoordinatorBed.start());
  actors.define({ name: "world", leaseMs: LEASE_MS, guarded });
  return actors;
}

test("S3 an incarnation expires W(L) after its last renewal, not before, by a commit", async () => {
  const actors = await world();
  const a = actors.server("a");
  actors.bed.advance(10_000);
  actors.renew(a);
  assert.equal(actors.bed.got(a.peer, "serverLease").nonce, 7);
  actors.bed.advance(W_LEASE_MS - 1);
  assert.equal(actors.bed.take(a.peer, "serverExpired"), undefined);
  const before = actors.bed.commits.length;
  actors.bed.advance(2);
  assert.equal(actors.bed.got(a.peer, "serverExpired").reason, "expired");
  assert.equal(actors.bed.commits.length, before + 1);
});

test("S1 an expired incarnation is not renewed", async () => {
  const actors = await world();
  const a = actors.server("a");
  actors.bed.advance(W_LEASE_MS + 1);
  actors.bed.clear(a.peer);
  actors.renew(a);
  assert.equal(actors.bed.take(a.peer, "serverLease"), undefined);
  assert.equal(actors.bed.got(a.peer, "serverExpired").reason, "unknown");
});

test("S1 where others can write the store, a renewal is answered after a commit, within 200 ms", async () => {
  const bed = await CoordinatorBed.start({ storeExclusive: false });
  const actors = new Actors(bed);
  actors.define({ name: "world", leaseMs: LEASE_MS, guarded: true });
  const a = actors.server("a");
  const before = bed.commits.length;
  actors.renew(a);
  assert.equal(bed.take(a.peer, "serverLease"), undefined);
  bed.advance(200);
  assert.equal(bed.commits.length, before + 1);
  bed.got(a.peer, "serverLease");
});

test("S3 guarded: what an expired server owned is placed again at once", async () => {
  const actors = await world();
  const a = actors.server("a");
  const proxy = actors.proxy();
  const { epoch } = actors.resolve(proxy, "k");
  actors.bed.advance(W_LEASE_MS + 1);
  const b = actors.server("b");
  const again = actors.resolve(proxy, "k");
  assert.equal(again.incarnation, b.incarnation);
  assert.ok(again.epoch > epoch);
  assert.notEqual(a.incarnation, b.incarnation);
});

test("S4 after a stop longer than W(L) nobody expires for W(L): renewals are still unread", async () => {
  const actors = await world();
  const { bed } = actors;
  const a = actors.server("a");
  bed.advance(1_000);
  bed.now += W_LEASE_MS + 5_000;
  bed.advance(1);
  assert.equal(bed.take(a.peer, "serverExpired"), undefined, "the late tick comes first");
  actors.renew(a);
  bed.got(a.peer, "serverLease");
  bed.now += W_LEASE_MS + 5_000;
  bed.advance(1);
  bed.advance(W_LEASE_MS - 10);
  assert.equal(bed.take(a.peer, "serverExpired"), undefined);
  bed.advance(20);
  bed.got(a.peer, "serverExpired");
});

test("S4 after a restart nobody expires for W(L), and a session is resumed with its secret", async () => {
  const actors = await world();
  const { bed } = actors;
  const a = actors.server("a");
  const proxy = actors.proxy();
  const { epoch } = actors.resolve(proxy, "k");
  bed.advance(14_000);
  await bed.restart();
  bed.advance(W_LEASE_MS - 1000);
  const peer = bed.connect(Role.SERVER);
  bed.send(peer, {
    case: "resume",
    value: { requestId: 3, incarnation: a.incarnation, secret: a.secret },
  });
  assert.equal(bed.got(peer, "registered").incarnation, a.incarnation);
  const fresh = bed.connect(Role.PROXY);
  const answer = actors.resolve(fresh, "k");
  assert.equal(answer.epoch, epoch);
  assert.equal(answer.incarnation, a.incarnation);
});

test("a session is resumed only with its secret", async () => {
  const actors = await world();
  const a = actors.server("a");
  const peer = actors.bed.connect(Role.SERVER);
  actors.bed.send(peer, {
    case: "resume",
    value: { requestId: 3, incarnation: a.incarnation, secret: new Uint8Array(16) },
  });
  assert.equal(actors.bed.got(peer, "serverExpired").reason, "wrong-secret");
});

test("S5 a registration that proves its predecessor releases what that held", async () => {
  const actors = await world();
  const a = actors.server("a");
  const proxy = actors.proxy();
  actors.resolve(proxy, "k");
  const peer = actors.bed.connect(Role.SERVER);
  actors.register(peer, "a", {
    previousIncarnation: a.incarnation,
    previousSecret: a.secret,
    address: `10.0.0.1:${8000 + a.peer}`,
  });
  const { incarnation } = actors.bed.got(peer, "registered");
  assert.ok(incarnation > a.incarnation);
  assert.equal(actors.resolve(proxy, "k").incarnation, incarnation);
  const other = actors.bed.connect(Role.SERVER);
  actors.register(other, "c", { previousIncarnation: incarnation, previousSecret: a.secret });
  assert.equal(actors.bed.got(other, "problem").code, "wrong-secret");
});

test("a registration said again after its answer was lost is the same incarnation", async () => {
  const actors = await world();
  const a = actors.server("a");
  actors.bed.disconnect(a.peer);
  const peer = actors.bed.connect(Role.SERVER);
  actors.register(peer, "a", { secret: a.secret });
  assert.equal(actors.bed.got(peer, "registered").incarnation, a.incarnation);
});

test("registrations are refused with their reason", async () => {
  const actors = await world();
  actors.server("a", { address: "10.0.0.1:1000" });
  const refusals = [
    ["server-id-taken", "a", {}],
    ["address-taken", "b", { address: "10.0.0.1:1000" }],
    ["bad-address", "b", { address: "localhost:80" }],
    ["bad-address", "b", { address: "10.0.0.1:0" }],
    ["bad-server-id", "b c", {}],
    ["guard-mismatch", "b", { guarded: false }],
    ["bad-frame", "b", { secret: new Uint8Array(3) }],
    ["service-unknown", "b", { service: "nowhere" }],
  ] as const;
  for (const [code, id, options] of refusals) {
    const peer = actors.bed.connect(Role.SERVER);
    actors.register(peer, id, options);
    assert.equal(actors.bed.got(peer, "problem").code, code);
  }
});

test("S8 a proven death releases everything in one entry; without proof it does not count", async () => {
  const actors = await world();
  const a = actors.server("a");
  const b = actors.server("b");
  const proxy = actors.proxy();
  for (let key = 0; key < 6; key += 1) actors.resolve(proxy, `key-${key}`);
  actors.bed.clear(proxy);
  const peer = actors.bed.connect(Role.SERVER);
  const died = { incarnation: a.incarnation, secret: a.secret };
  actors.bed.send(peer, { case: "died", value: died });
  assert.equal(actors.bed.got(peer, "problem").code, "bad-frame");
  const before = actors.bed.commits.length;
  actors.bed.send(peer, { case: "died", value: { ...died, proof: DeathProof.SUBREAPER } });
  actors.bed.got(peer, "serverEnded");
  assert.equal(actors.bed.commits.length, before + 1);
  const entries = actors.bed.takeAll(proxy, "feedBatch").flatMap((batch) => batch.entries);
  assert.deepEqual(
    entries.map(({ entry }) => entry.case),
    ["serverEnded"],
  );
  for (let key = 0; key < 6; key += 1) {
    assert.equal(actors.resolve(proxy, `key-${key}`).incarnation, b.incarnation);
  }
});

test("S7 M4 unguarded: keys and address of an ended server wait until the proxies are quiet", async () => {
  const actors = await world(false);
  const { bed } = actors;
  const a = actors.server("a", { address: "10.0.0.1:1000" });
  const proxy = actors.proxy();
  actors.resolve(proxy, "k");
  bed.send(a.peer, { case: "leave", value: { incarnation: a.incarnation, secret: a.secret } });
  bed.got(a.peer, "serverEnded");
  const peer = bed.connect(Role.SERVER);
  actors.register(peer, "b", { address: "10.0.0.1:1000", guarded: false });
  assert.equal(bed.take(peer, "registered"), undefined);
  const c = actors.server("c", { guarded: false });
  actors.askFor(proxy, "k");
  assert.equal(bed.take(proxy, "resolved"), undefined);
  actors.renewFeed(proxy);
  bed.send(proxy, { case: "quiet", value: { service: "world", incarnation: a.incarnation } });
  assert.equal(bed.got(proxy, "resolved").outcome, ResolveOutcome.OWNER);
  bed.got(peer, "registered");
  assert.ok(c.incarnation > a.incarnation);
});

test("P6 unguarded: after a restart an ended server's keys wait W(F), whoever reconnects", async () => {
  const actors = await world(false);
  const { bed } = actors;
  const a = actors.server("a", { guarded: false });
  const proxy = actors.proxy();
  actors.resolve(proxy, "k");
  bed.send(a.peer, { case: "leave", value: { incarnation: a.incarnation, secret: a.secret } });
  await bed.restart();
  actors.server("b", { guarded: false });
  const again = actors.proxy();
  assert.equal(actors.resolve(again, "k").outcome, ResolveOutcome.NOT_YET);
  for (let waited = 0; waited < W_LEASE_MS; waited += 5000) {
    bed.advance(5000);
    actors.renewFeed(again);
  }
  assert.notEqual(actors.resolve(again, "k").outcome, ResolveOutcome.NOT_YET);
});

test("G2 a confirmation is by incarnation, and only of what is active", async () => {
  const actors = await world();
  const a = actors.server("a");
  const proxy = actors.proxy();
  const { epoch } = actors.resolve(proxy, "k");
  const confirm = (key: string): { owned: boolean; epoch: bigint } => {
    actors.bed.send(a.peer, {
      case: "confirm",
      value: { requestId: 1, incarnation: a.incarnation, key },
    });
    return actors.bed.got(a.peer, "confirmed");
  };
  assert.deepEqual([confirm("k").owned, confirm("k").epoch], [true, epoch]);
  assert.deepEqual([confirm("other").owned, confirm("other").epoch], [false, 0n]);
  actors.bed.send(a.peer, { case: "confirm", value: { requestId: 1, incarnation: 5n, key: "k" } });
  actors.bed.got(a.peer, "serverExpired");
});

test("T4 a peer that has seen a later revision: it is lifted, and who holds lost grants is not renewed", async () => {
  const actors = await world();
  const { bed } = actors;
  const a = actors.server("a");
  const { revision } = bed.machine.stats();
  const seen = { generation: bed.meta?.generation ?? new Uint8Array(0), revision: revision + 500n };
  const peer = bed.connect(Role.SERVER, seen);
  assert.ok(bed.machine.stats().revision > seen.revision);
  assert.equal(bed.machine.stats().storeWentBack, 1);
  bed.send(peer, {
    case: "resume",
    value: { requestId: 1, incarnation: a.incarnation, secret: a.secret },
  });
  bed.got(peer, "serverExpired");
  const proxy = bed.connect(Role.PROXY);
  assert.equal(actors.resolve(proxy, "free").outcome, ResolveOutcome.NOT_YET);
  bed.advance(W_LEASE_MS);
  assert.notEqual(actors.resolve(proxy, "free").outcome, ResolveOutcome.NOT_YET);
});
