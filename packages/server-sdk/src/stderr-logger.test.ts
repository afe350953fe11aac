import assert from "node:assert/strict";
import test from "node:test";
import { createStderrLogger } from "./stderr-logger.ts";

test("warnings and errors are lines of the members that the core's logs have", () => {
  const lines: string[] = [];
  const logger = createStderrLogger({ write: (text) => lines.push(text) });
  logger.debug({}, "not written");
  logger.info({}, "not written");
  logger.warn({ incarnation: 2n ** 60n, key: undefined }, "lease over");
  logger.error({ remaining: 3 }, "two\nlines");
  const [warning = {}, error = {}] = lines.map((line): Record<string, unknown> => JSON.parse(line));
  assert.equal(lines.length, 2);
  assert.ok(lines.every((line) => line.indexOf("\n") === line.length - 1));
  const names = ["level", "time", "pid", "incarnation", "msg"];
  assert.deepEqual(Object.keys(warning), names);
  assert.deepEqual(
    [warning["level"], warning["pid"], warning["incarnation"], warning["msg"]],
    ["warn", process.pid, String(2n ** 60n), "lease over"],
  );
  assert.equal(new Date(String(warning["time"])).toISOString(), warning["time"]);
  assert.deepEqual([error["level"], error["remaining"]], ["error", 3]);
});
