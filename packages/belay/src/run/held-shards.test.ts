import assert from "node:assert/strict";
import test from "node:test";
import { type HeldShard, HeldShards } from "./held-shards.ts";

const shard = (key: string, epoch: bigint): HeldShard => ({ key, epoch });

test("M3: a release is kept until it is acknowledged at its epoch or above", () => {
  const held = new HeldShards();
  held.granted([shard("ann", 1n), shard("bob", 2n)]);
  assert.equal(held.size, 2);
  held.released([shard("ann", 1n)]);
  assert.equal(held.size, 1);
  held.acknowledged([shard("ann", 0n)]);
  assert.deepEqual(held.unacknowledged(), [shard("ann", 1n)]);
  held.acknowledged([shard("ann", 1n)]);
  assert.deepEqual(held.unacknowledged(), []);
});

test("a release of an older epoch does not take a newer grant away", () => {
  const held = new HeldShards();
  held.granted([shard("ann", 5n)]);
  held.released([shard("ann", 4n)]);
  assert.equal(held.size, 1);
});
