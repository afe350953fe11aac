import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { BelayUnderTest, Child, until } from "@belay/testkit";
import { leftovers } from "./leftovers.ts";

const root = resolve(import.meta.dirname, "../..");
const launcher = join(root, "packages/belay/bin/belay.mjs");
const START_MS_MAX = 120_000;

/** `belay up` in a process group of its own, as a terminal has it. */
function startUp(belay: BelayUnderTest, ...args: readonly string[]): Child {
  const env = { BELAY_METRICS_PORT: "0" };
  return belay.spawn("up", [launcher, "up", ...args], { detached: true, env });
}

async function answersFromEdge(belay: BelayUnderTest): Promise<void> {
  await until("the edge answers", async () => {
    const response = await fetch(`http://127.0.0.1:${belay.ports.edge}/s/ann/`);
    return response.status === 200;
  });
}

/** The pid of the process whose environment names `text` and whose command matches. */
function findPid(text: string, command: RegExp): number {
  const line = leftovers(text).find((it) => command.test(it));
  assert.ok(line, `no process ${command}`);
  return Number(line.split(" ")[0]);
}

describe("belay up --demo", () => {
  let belay: BelayUnderTest;
  let up: Child;

  before(async () => {
    belay = await BelayUnderTest.create({});
    up = startUp(belay, "--demo");
    await up.printed(/Belay is ready/, START_MS_MAX);
  });
  after(async () => belay.stop());

  test("the three commands that it prints work in a plain shell", async () => {
    const [, tries] = await up.printed(/Try, in another terminal:\n([^]*?)\n\n/);
    const lines = (tries ?? "").split("\n").map((line) => line.split("#")[0]?.trim() ?? "");
    assert.equal(lines.length, 3);
    const type = async (line = ""): Promise<string> => {
      // A user's shell has none of our variables.
      const env = { BELAY_API: undefined, BELAY_API_PORT: undefined, NODE_OPTIONS: undefined };
      const shell = new Child(line, ["sh", "-c", line], { cwd: root, env });
      assert.equal(await shell.exited(), 0, `${line}\n${shell.output}`);
      return shell.output;
    };
    assert.match(await type(lines[0]), /ann/);
    assert.match(await type(lines[1]), /server +world-\d/);
    assert.match(await type(lines[2]), /moved from +world-\d/);
  });

  test("doctor finds nothing wrong", async () => {
    const doctor = belay.belay("doctor", ["doctor"]);
    assert.equal(await doctor.exited(), 0, doctor.output);
    assert.match(doctor.output, /✓ module +Envoy loads .*libbelay\.so/);
    assert.match(doctor.output, /✓ coordinator/);
  });

  test("`apply` brings a service, and a bad file is refused with its place", async () => {
    const good = join(belay.data, "chat.yaml");
    writeFileSync(good, "service: chat\nhosts: [chat.test]\nkey: [{ path: '/rooms/{key}/**' }]\n");
    assert.match(await belay.ask(["apply", good]), /chat: applied/);
    assert.match(await belay.ask(["get", "services"]), /chat +serving/);
    const bad = join(belay.data, "bad.yaml");
    writeFileSync(bad, "service: bad\nkeys: 3\n");
    assert.match(await belay.ask(["check", bad], 3), /bad\.yaml:2:1: keys: unknown member/);
    assert.match(await belay.ask(["apply", bad], 3), /nothing was applied:[^]*bad\.yaml:2:1/);
  });

  test("a demo server that dies is reported, with its last words, and the rest goes on", async () => {
    process.kill(
      findPid("BELAY_SERVER_ID=world-3", /^\d+ \S*node .*world\/src\/main\.ts/),
      "SIGKILL",
    );
    await up.printed(/world-3 .*ended with exit code 137/);
    await answersFromEdge(belay);
    assert.ok(up.running);
  });

  test("Ctrl-C stops everything in order, exits with 0 and leaves nothing behind", async () => {
    const saidBefore = up.output.length;
    up.signal("SIGINT", { group: true });
    assert.equal(await up.exited(), 0, up.output.slice(-2000));
    const said = up.output.slice(saidBefore);
    assert.doesNotMatch(said, / (WARN|ERROR|W|E|C) /, "a clean end alarms nobody");
    assert.deepEqual(leftovers(belay.data), []);
    const order = ["edge", "world-1", "control-plane", "coordinator"].map((name) =>
      up.output.lastIndexOf(`${name} stopped`),
    );
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
      up.output,
    );
    assert.ok(!order.includes(-1), up.output);
  });
});

describe("belay up", () => {
  let belay: BelayUnderTest;

  before(async () => {
    belay = await BelayUnderTest.create({});
  });
  after(async () => belay.stop());

  test("a port in use is named, with who has it and what changes it", async () => {
    const squatter = createServer().listen(belay.ports.xds, "127.0.0.1");
    await once(squatter, "listening");
    const up = startUp(belay);
    assert.equal(await up.exited(), 7);
    squatter.close();
    const what = `port ${belay.ports.xds} for xDS is in use by .*\\(pid ${process.pid}\\); BELAY_XDS_PORT`;
    assert.match(up.output, new RegExp(what));
  });

  test("the death of Envoy ends it with exit code 1 and Envoy's last words", async () => {
    const up = startUp(belay);
    await up.printed(/Belay is ready/, START_MS_MAX);
    process.kill(findPid(belay.data, /^\d+ \S*envoy -c/), "SIGKILL");
    assert.equal(await up.exited(), 1, up.output);
    assert.match(up.output, /edge .*ended with exit code 137/);
    assert.deepEqual(leftovers(belay.data), []);
  });

  test("killed without mercy, it leaves nothing behind either", async () => {
    const up = startUp(belay);
    await up.printed(/Belay is ready/, START_MS_MAX);
    await up.kill();
    await until("nothing is left", () => leftovers(belay.data).length === 0, 30_000);
  });
});
