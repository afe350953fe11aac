import assert from "node:assert/strict";
import { uptime } from "node:os";
import test from "node:test";
import { createBootClock } from "./boot-clock.ts";

test("S6 the clock never goes back and stays with the time since boot", () => {
  const clock = createBootClock();
  let last = clock.now();
  for (let reads = 0; reads < 10_000; reads += 1) {
    const now = clock.now();
    assert.ok(now >= last);
    last = now;
  }
  assert.ok(Math.abs(last - uptime() * 1000) < 100);
});
