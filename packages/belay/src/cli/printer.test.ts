import assert from "node:assert/strict";
import test from "node:test";
import { formatMs } from "./printer.ts";

test("times are short for people", () => {
  const cases = [
    [0, "0 ms"],
    [999, "999 ms"],
    [1500, "1.5 s"],
    [119_000, "119.0 s"],
    [120_000, "2 min"],
    [7_200_000, "2.0 h"],
  ] as const;
  for (const [ms, text] of cases) assert.equal(formatMs(ms), text);
});
