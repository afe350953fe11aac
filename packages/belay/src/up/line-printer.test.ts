import assert from "node:assert/strict";
import test from "node:test";
import { toJsonLine } from "./line-printer.ts";

test("JSON of a process keeps its time and gets its name; other words get a time", () => {
  const own = '{"level":"warn","time":"2026-01-02T03:04:05.678Z","msg":"x"}';
  assert.deepEqual(JSON.parse(toJsonLine("edge", own)), {
    level: "warn",
    time: "2026-01-02T03:04:05.678Z",
    msg: "x",
    process: "edge",
  });
  for (const line of ["belay is stopped", "{broken", '"text"', ""]) {
    const { time, ...rest } = JSON.parse(toJsonLine("world-1", line)) as Record<string, unknown>;
    assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual(rest, { level: "info", msg: line, process: "world-1" });
  }
});
