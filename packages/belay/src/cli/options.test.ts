import assert from "node:assert/strict";
import type { Command } from "commander";
import test from "node:test";
import { createProgram } from "./program.ts";
import { parseCount, parseDuration, parsePort, parsePortOrAny } from "./options.ts";

test("a port is a whole number from 1 to 65535", () => {
  assert.equal(parsePort("1"), 1);
  assert.equal(parsePort("65535"), 65_535);
  for (const bad of ["0", "65536", "80.5", "1e3", "", " 80", "http", "-1"]) {
    assert.throws(() => parsePort(bad), /1 to 65535/, bad);
  }
  assert.equal(parsePortOrAny("0"), 0);
});

test("a time has a unit and is at most a day", () => {
  assert.equal(parseDuration("250ms"), 250);
  assert.equal(parseDuration("1.5s"), 1500);
  assert.equal(parseDuration("2m"), 120_000);
  assert.equal(parseDuration("24h"), 86_400_000);
  for (const bad of ["", "5", "25h", "-1s", "1 s", "1d", "s"]) {
    assert.throws(() => parseDuration(bad), /ms, s, m or h/, bad);
  }
});

test("every time that a flag has by default is shown with its unit", () => {
  const times = allCommands(createProgram())
    .flatMap((command) => command.options)
    .filter(({ flags, defaultValue }) => flags.endsWith("<time>") && defaultValue !== undefined);
  assert.ok(times.length > 5);
  for (const { flags, defaultValue, defaultValueDescription } of times) {
    assert.equal(parseDuration(defaultValueDescription ?? ""), defaultValue, flags);
  }
});

function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

test("a count is a whole number of at least 0", () => {
  assert.equal(parseCount("0"), 0);
  for (const bad of ["-1", "1.5", "", "9999999999"]) assert.throws(() => parseCount(bad), bad);
});
