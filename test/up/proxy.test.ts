import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { BelayUnderTest, type Child, until } from "@belay/testkit";

const plainServer = join(import.meta.dirname, "../cli/plain-server.mjs");
/** The lease is how long `belay run` may go on when all are told to stop at once. */
const world =
  'service: plain\nkey: [{ path: "/k/{key}/**" }]\nownership: { lease: 3s, drain: 1s }\n';

/** The Envoy that a `belay proxy` started: below it, or below what it started. */
function findEnvoy(pid: number): number {
  if (readFileSync(`/proc/${pid}/comm`, "utf8") === "envoy\n") return pid;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  assert.notEqual(children, "", `${pid} has no child`);
  return findEnvoy(Number(children.split(" ")[0]));
}

/** MiB of code that is no file's any more. */
function anonymousCodeMib(pid: number): number {
  const lines = readFileSync(`/proc/${pid}/maps`, "utf8").split("\n");
  const sizes = lines.map((line) => {
    const [, start = "0", end = "0"] = /^(\w+)-(\w+) r-xp 0+ 00:00 0 *$/.exec(line) ?? [];
    return Number.parseInt(end, 16) - Number.parseInt(start, 16);
  });
  return sizes.reduce((sum, size) => sum + size, 0) / 2 ** 20;
}

describe("belay proxy", () => {
  let belay: BelayUnderTest;
  let server: Child;

  before(async () => {
    belay = await BelayUnderTest.create({ plain: world });
    belay.startCoordinator();
    belay.startControlPlane();
    await belay.startEdge({ env: { BELAY_METRICS_PORT: "0" } });
    const run = ["run", "--service", "plain", "--id", "plain-1", "--port", "auto", "--"];
    server = belay.belay("plain-1", [...run, process.execPath, plainServer]);
    await until(
      "a request is routed",
      async () => (await fetch(url("ann/"))).status === 200,
      60_000,
    );
  });
  after(async () => belay.stop());

  const url = (path: string): string => `http://127.0.0.1:${belay.ports.edge}/k/${path}`;

  test("its /healthz and /metrics are Envoy's readiness and statistics", async () => {
    const edge = belay.edges[0]?.child;
    const [, port] = (await edge?.printed(/\/healthz and \/metrics port=(\d+)/)) ?? [];
    const health = await fetch(`http://127.0.0.1:${port}/healthz`);
    assert.equal(health.status, 200);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    assert.match(metrics, /^envoy_server_live\{?.* 1$/m);
    assert.equal((await fetch(`http://127.0.0.1:${port}/config_dump`)).status, 404);
  });

  test("Envoy's code is in huge pages, or the log says why not; off is off", async () => {
    const start = async (env: Record<string, string>) => {
      const port = await belay.startEdge({ env: { BELAY_METRICS_PORT: "0", ...env } });
      const child = belay.edges.at(-1)?.child;
      assert.ok(child !== undefined);
      assert.equal((await fetch(`http://127.0.0.1:${port}/k/ann/`)).status, 200);
      return { child, mib: anonymousCodeMib(findEnvoy(child.pid)) };
    };
    const { child, mib } = await start({ BELAY_LOG_LEVEL: "debug" });
    const [, why] = await child.printed(/belay: (?:\d+ MiB of Envoy are in|no huge pages: (.+))/);
    if (why === undefined) assert.ok(mib >= 32, `${mib} MiB`);
    else {
      assert.match(why, /never|bytes|x86-64|right/);
      assert.equal(mib, 0, why);
    }
    assert.equal((await start({ BELAY_HUGE_PAGES: "off" })).mib, 0);
  });

  test("a second edge on the same ports is refused: Envoy itself would share them", async () => {
    const twin = belay.belay("twin", ["proxy"]);
    assert.equal(await twin.exited(), 7, twin.output);
    assert.match(twin.output, /port \d+ for .* is in use by .*envoy/);
  });

  test("on SIGTERM a running request ends well before Envoy does", async () => {
    const edge = belay.edges[0]?.child;
    const answer = fetch(url("ann/hold"));
    await server.printed(/plain server: holding/);
    edge?.signal("SIGTERM");
    await edge?.printed(/draining/);
    const [, pid] = await server.printed(/plain server (\d+) on/);
    process.kill(Number(pid), "SIGUSR2");
    const response = await answer;
    assert.equal(response.status, 200);
    assert.equal(await response.text(), `${pid}\n`);
    assert.equal(await edge?.exited(), 0);
  });
});
