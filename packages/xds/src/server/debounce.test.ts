import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Debounce } from "./debounce.ts";

const start = (t: TestContext) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let runs = 0;
  const debounce = new Debounce(() => (runs += 1), { pauseMs: 20, ceilingMs: 100 });
  return { debounce, runs: () => runs, tick: (ms: number) => t.mock.timers.tick(ms) };
};

test("rule 10: calls that come together run once, after a pause", (t) => {
  const { debounce, runs, tick } = start(t);
  debounce.call();
  tick(15);
  debounce.call();
  tick(15);
  assert.equal(runs(), 0);
  tick(5);
  assert.equal(runs(), 1);
  tick(1000);
  assert.equal(runs(), 1);
});

test("rule 10: a stream of calls runs at the ceiling", (t) => {
  const { debounce, runs, tick } = start(t);
  for (let call = 0; call < 30; call += 1) {
    debounce.call();
    tick(10);
  }
  assert.equal(runs(), 3, "every 100 ms");
});

test("flush runs what waits, and only that; cancel forgets it", (t) => {
  const { debounce, runs, tick } = start(t);
  debounce.flush();
  assert.equal(runs(), 0);
  debounce.call();
  debounce.flush();
  assert.equal(runs(), 1);
  debounce.call();
  debounce.cancel();
  tick(1000);
  assert.equal(runs(), 1);
});
