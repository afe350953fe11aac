import assert from "node:assert/strict";
import test from "node:test";
import type { LogFields } from "@belay/model";
import { ShardHooks } from "./shard-hooks.ts";

const quiet = (_fields: LogFields, _message: string): void => undefined;
const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };

test("without hooks nothing is awaited", () => {
  const hooks = new ShardHooks(logger, 1000);
  assert.equal(hooks.acquire("a", 1n), true);
  hooks.release("a", 1n, "moved");
  assert.equal(hooks.pendingRelease("a", 1n), undefined);
});

test("onAcquire runs once for an epoch, all requests wait for it, another epoch runs it again", async () => {
  const hooks = new ShardHooks(logger, 1000);
  const calls: string[] = [];
  const loaded = Promise.withResolvers<void>();
  hooks.acquireHook = async (key, epoch) => {
    calls.push(`${key}@${epoch}`);
    await loaded.promise;
  };
  const [first, second] = [hooks.acquire("a", 1n), hooks.acquire("a", 1n)];
  assert.notEqual(first, true);
  loaded.resolve();
  assert.equal(await first, true);
  assert.equal(await second, true);
  assert.equal(hooks.acquire("a", 1n), true);
  assert.equal(await hooks.acquire("a", 2n), true);
  assert.deepEqual(calls, ["a@1", "a@2"]);
});

test("a failed onAcquire is tried again by the next request", async () => {
  const hooks = new ShardHooks(logger, 1000);
  let calls = 0;
  hooks.acquireHook = () => {
    calls += 1;
    if (calls === 1) throw new Error("no database");
  };
  assert.equal(await hooks.acquire("a", 1n), false);
  assert.equal(await hooks.acquire("a", 1n), true);
});

test("M3 the release waits for onRelease, which waits for onAcquire", async () => {
  const hooks = new ShardHooks(logger, 1000);
  const order: string[] = [];
  const loaded = Promise.withResolvers<void>();
  hooks.acquireHook = async () => {
    await loaded.promise;
    order.push("acquired");
  };
  hooks.releaseHook = (key, epoch, reason) => {
    order.push(`released ${key}@${epoch} ${reason}`);
  };
  const acquiring = hooks.acquire("a", 1n);
  hooks.release("a", 1n, "moved");
  const pending = hooks.pendingRelease("a", 1n);
  assert.ok(pending !== undefined);
  loaded.resolve();
  await Promise.all([acquiring, pending]);
  assert.deepEqual(order, ["acquired", "released a@1 moved"]);
  assert.equal(hooks.pendingRelease("a", 1n), undefined);
});

test("S5 all that was held is told as lost", async () => {
  const hooks = new ShardHooks(logger, 1000);
  const lost: string[] = [];
  hooks.releaseHook = (key, _epoch, reason) => {
    lost.push(`${key} ${reason}`);
  };
  void hooks.acquire("a", 1n);
  void hooks.acquire("b", 2n);
  hooks.releaseAll("lost");
  await hooks.allReleased();
  assert.deepEqual(lost.toSorted(), ["a lost", "b lost"]);
});

test("an onRelease that hangs holds a key for releaseMs only", async () => {
  const hooks = new ShardHooks(logger, 5);
  hooks.releaseHook = async () => new Promise(() => undefined);
  void hooks.acquire("a", 1n);
  hooks.release("a", 1n, "moved");
  await hooks.pendingRelease("a", 1n);
});
