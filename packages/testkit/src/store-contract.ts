import assert from "node:assert/strict";
import { test } from "node:test";
import type { Batch, Change, Row, Store } from "@belay/ownership";
import { After, Placement, ServerState } from "@belay/protocol";

/** How a backend is tried. */
export interface StoreUnderTest {
  /** An empty store. */
  create(): Store | Promise<Store>;
  /** The same data again, after `close`; undefined: it does not outlive its process. */
  reopen: (() => Store | Promise<Store>) | undefined;
}

const NOW_S = 1_700_000_000;

const rows = {
  service: {
    table: "service",
    name: "world",
    leaseMs: 15_000,
    feedLeaseMs: 10_000,
    waitFeedLeaseMs: 12_000,
    idleMs: 1_800_000,
    drainMs: 10_000,
    parkMs: 12_000,
    guarded: true,
    minted: false,
    placement: Placement.SPREAD,
    movesPerSecond: 50,
    removed: false,
  },
  server: {
    table: "server",
    incarnation: 2n ** 60n,
    service: "world",
    serverId: "a",
    address: "10.0.0.1:8000",
    zone: "z1",
    guarded: true,
    capacity: 7,
    secret: Uint8Array.of(0, 1, 255),
    leaseMs: 15_000,
    state: ServerState.DRAINING,
  },
  tombstone: {
    table: "tombstone",
    service: "world",
    serverId: "b",
    incarnation: 5n,
    after: After.EXPIRED,
    clear: true,
  },
  shard: {
    table: "shard",
    service: "world",
    key: "ключ/🎮 %",
    incarnation: 2n ** 60n,
    epoch: 2n ** 60n + 1n,
    movingSince: 2n ** 60n + 2n,
    moveTo: "b",
  },
} as const satisfies Record<string, Row>;

const put = (row: Row): Change => ({ op: "put", row });

async function loaded(store: Store): Promise<Row[]> {
  return Array.from(await store.load());
}

/** Every backend keeps these; titles carry the rule. */
export function testStoreContract(name: string, backend: StoreUnderTest): void {
  /** A store that was taken over, and the next batch on it. */
  async function taken(): Promise<{
    readonly store: Store;
    readonly batch: (changes: readonly Change[]) => Batch;
  }> {
    const store = await backend.create();
    const { term, revision } = await store.takeOver(NOW_S);
    let from = revision;
    return {
      store,
      batch: (changes) => {
        const batch = { term, from, to: from + 1n, changes };
        from = batch.to;
        return batch;
      },
    };
  }

  test(`${name}: T1 a take-over raises the term, T4 keeps the generation and lifts the revision by time`, async () => {
    const store = await backend.create();
    const first = await store.takeOver(NOW_S);
    assert.equal(first.generation.length, 16);
    assert.equal(first.term, 1n);
    assert.equal(first.previousRevision, 0n);
    assert.equal(first.revision, BigInt(NOW_S) << 20n);
    const second = await store.takeOver(NOW_S - 5);
    assert.deepEqual(second.generation, first.generation);
    assert.equal(second.term, 2n);
    assert.equal(second.previousRevision, first.revision);
    assert.equal(second.revision, first.revision + 1n);
    await store.close();
  });

  test(`${name}: rows of every table come back as they were put`, async () => {
    const { store, batch } = await taken();
    const all = Object.values(rows);
    assert.deepEqual(await store.commit(batch(all.map(put))), { outcome: "committed" });
    const back = await loaded(store);
    const byTable = (a: Row, b: Row): number => (a.table < b.table ? -1 : 1);
    assert.deepEqual(back.toSorted(byTable), all.toSorted(byTable));
    await store.close();
  });

  test(`${name}: a batch replaces and deletes rows, in its order`, async () => {
    const { store, batch } = await taken();
    const { service, server, tombstone, shard } = rows;
    await store.commit(batch([service, server, tombstone, shard].map(put)));
    await store.commit(
      batch([
        put({ ...shard, epoch: 9n }),
        put({ ...shard, key: "x" }),
        { op: "delete", ref: { table: "shard", service: "world", key: "x" } },
        { op: "delete", ref: { table: "server", incarnation: server.incarnation } },
        { op: "delete", ref: { table: "tombstone", service: "world", serverId: "b" } },
        { op: "delete", ref: { table: "service", name: "world" } },
        { op: "delete", ref: { table: "service", name: "never there" } },
      ]),
    );
    assert.deepEqual(await loaded(store), [{ ...shard, epoch: 9n }]);
    await store.close();
  });

  test(`${name}: T1 a deposed term writes nothing`, async () => {
    const { store, batch } = await taken();
    const old = batch([put(rows.shard)]);
    const { term } = await store.takeOver(NOW_S);
    assert.deepEqual(await store.commit(old), { outcome: "deposed", term });
    assert.deepEqual(await loaded(store), []);
    await store.close();
  });

  test(`${name}: T3 the same batch sent again is committed once`, async () => {
    const { store, batch } = await taken();
    const first = batch([put(rows.shard)]);
    assert.equal((await store.commit(first)).outcome, "committed");
    assert.equal((await store.commit(first)).outcome, "committed");
    const next = batch([put({ ...rows.shard, epoch: 77n })]);
    assert.equal((await store.commit(next)).outcome, "committed");
    assert.deepEqual(await loaded(store), [{ ...rows.shard, epoch: 77n }]);
    await store.close();
  });

  test(`${name}: T1 a batch that begins at another revision is not written`, async () => {
    const { store, batch } = await taken();
    const first = batch([put(rows.shard)]);
    const second = batch([]);
    const third = batch([put(rows.service)]);
    await store.commit(first);
    assert.equal((await store.commit(third)).outcome, "failed");
    assert.deepEqual(await loaded(store), [rows.shard]);
    assert.equal((await store.commit(second)).outcome, "committed");
    await store.close();
  });

  test(`${name}: a batch may raise the revision by more than one (T4)`, async () => {
    const { store, batch } = await taken();
    const wide = batch([]);
    const to = wide.to + 1000n;
    assert.equal((await store.commit({ ...wide, to })).outcome, "committed");
    assert.equal((await store.takeOver(0)).previousRevision, to);
    await store.close();
  });

  const { reopen } = backend;
  if (reopen === undefined) return;
  test(`${name}: what was committed is there after a restart, the generation too`, async () => {
    const { store, batch } = await taken();
    const before = await store.takeOver(NOW_S);
    await store.commit({
      ...batch([put(rows.shard)]),
      term: before.term,
      from: before.revision,
      to: before.revision + 1n,
    });
    await store.close();
    const again = await reopen();
    const meta = await again.takeOver(NOW_S);
    assert.deepEqual(Uint8Array.from(meta.generation), Uint8Array.from(before.generation));
    assert.equal(meta.previousRevision, before.revision + 1n);
    assert.equal(meta.term, before.term + 1n);
    assert.deepEqual(await loaded(again), [rows.shard]);
    await again.close();
  });
}
