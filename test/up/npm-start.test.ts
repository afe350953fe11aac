import assert from "node:assert/strict";
import { resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { BelayUnderTest, type Child, until } from "@belay/testkit";
import { leftovers } from "./leftovers.ts";

const root = resolve(import.meta.dirname, "../..");
const START_MS_MAX = 240_000;

/** Ctrl-C. `belay up` ends with 0; npm, which got the signal as well, may say so with 130. */
async function interrupt(start: Child): Promise<void> {
  start.signal("SIGINT", { group: true });
  const code = await start.exited();
  assert.ok(code === 0 || code === 130, `exit code ${code}\n${start.output.slice(-2000)}`);
  assert.match(start.output, /coordinator stopped\n.*stopped\n/);
}

describe("npm start", () => {
  let belay: BelayUnderTest;
  let start: Child;

  before(async () => {
    belay = await BelayUnderTest.create({});
  });
  after(async () => belay.stop());

  test("brings the demo up: the first request is routed to its owner", async (t) => {
    const begunMs = performance.now();
    const env = { BELAY_METRICS_PORT: "0", NODE_OPTIONS: undefined };
    start = belay.spawn("npm start", ["npm", "start"], { cwd: root, detached: true, env });
    const reply = await until(
      "the edge routes a request",
      async () => {
        if (!start.running) throw new Error(start.output);
        const response = await fetch(`http://127.0.0.1:${belay.ports.edge}/s/ann/`);
        return response.status === 200 ? response.text() : undefined;
      },
      START_MS_MAX,
    );
    t.diagnostic(`first routed request after ${Math.round(performance.now() - begunMs)} ms`);
    assert.match(reply, /ann/);
    await start.printed(/Belay is ready/);
    assert.match(start.output, /✓ npm packages: up to date/);
  });

  test("Ctrl-C in its terminal ends it and leaves nothing behind", async () => {
    await interrupt(start);
    assert.deepEqual(leftovers(belay.data), []);
  });

  test("a second start on the same data owes no waiting after a clean stop", async () => {
    const env = { BELAY_METRICS_PORT: "0", NODE_OPTIONS: undefined };
    start = belay.spawn("npm start", ["npm", "start"], { cwd: root, detached: true, env });
    await start.printed(/Belay is ready/, START_MS_MAX);
    assert.doesNotMatch(start.output, /may still live/);
    await interrupt(start);
  });
});
