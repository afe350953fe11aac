import assert from "node:assert/strict";
import test from "node:test";
import { pause, until } from "@belay/testkit";
import { CoordinatorUnderTest } from "../coordinator/coordinator-under-test.ts";
import { findBreaches, readRuns } from "../promise/record.ts";
import { EdgeUnderTest } from "./edge-under-test.ts";
import { recordOf, startServer } from "./servers-under-test.ts";

const LEASE_MS = 3000;
/** W(3 s) with ρ = 1 % and a margin of 200 ms, in whole milliseconds. */
const EXPIRY_MS = Math.ceil((LEASE_MS * 1.01) / 0.99 + 200);

interface Answer {
  readonly server: string;
  readonly epoch: string;
  readonly count: number;
}

const parse = (body: string): Answer => JSON.parse(body) as Answer;

test("S5 S6 a server stopped for longer than its lease refuses when it goes on", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({ leaseMs: LEASE_MS });
  t.after(async () => coordinator.stop());
  const frozen = await startServer(coordinator, "frozen");
  const edge = new EdgeUnderTest(coordinator);
  const keys = Array.from({ length: 20 }, (_, index) => `key-${index}`);
  for (const key of keys) assert.equal(parse((await edge.send(key)).body).server, "frozen");
  const other = await startServer(coordinator, "other");
  const stale = await Promise.all(keys.map(async (key) => edge.locate(key)));

  frozen.signal("SIGSTOP");
  const stoppedAt = performance.now();
  // From here on the keys have no owner that may serve, until the lease is over for certain (S3).
  const taking = keys.map(async (key) => {
    const resolved = await until(`${key} has a new owner`, async () => {
      const answer = await edge.resolveOnce(key);
      return (
        answer.incarnation > 0n && String(answer.epoch) !== epochOf(stale, keys, key) && answer
      );
    });
    return { key, resolved, afterMs: performance.now() - stoppedAt };
  });
  for (const { key, afterMs } of await Promise.all(taking)) {
    assert.ok(afterMs >= EXPIRY_MS - LEASE_MS / 3, `${key} was given away after ${afterMs} ms`);
  }
  for (const key of keys) edge.forget(key);
  for (const key of keys) assert.equal(parse((await edge.send(key)).body).server, "other");

  frozen.signal("SIGCONT");
  const { fire } = await import("@belay/testkit");
  const late = await Promise.all(
    stale.map(async ({ port, identity }) => fire(port, { path: "/", headers: identity })),
  );
  for (const reply of late) {
    assert.equal(reply.status, 421);
    assert.match(String(reply.headers["x-belay-refused"]), /^\d+; as-of=\d+; reason=\w/);
  }
  await frozen.printed(/released key-0 \d+ lost/);
  await until("it is registered again", async () => {
    const servers = await coordinator.control.ask({ case: "servers", value: { service: "world" } });
    return servers.case === "servers" && servers.value.servers.length === 2;
  });
  for (const key of keys) assert.equal(parse((await edge.send(key)).body).server, "other");
  assert.deepEqual(findBreaches(readRuns(recordOf(coordinator))), []);
  assert.ok(other.running);
});

function epochOf(
  stale: readonly { identity: Record<string, string> }[],
  keys: readonly string[],
  key: string,
): string | undefined {
  return stale[keys.indexOf(key)]?.identity["x-belay-epoch"];
}

test("I11 a killed server's keys are served by another within W(L) + 1 s", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({ leaseMs: LEASE_MS });
  t.after(async () => coordinator.stop());
  const victim = await startServer(coordinator, "victim");
  const edge = new EdgeUnderTest(coordinator);
  assert.equal(parse((await edge.send("a")).body).server, "victim");
  await startServer(coordinator, "heir");
  await victim.kill();
  const killedAt = performance.now();
  const reply = await edge.send("a");
  assert.equal(parse(reply.body).server, "heir");
  const tookMs = performance.now() - killedAt;
  assert.ok(tookMs < EXPIRY_MS + 1000, `${tookMs} ms`);
});

test("S2 a coordinator that is away for less than the lease is not noticed by clients", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({ leaseMs: LEASE_MS });
  t.after(async () => coordinator.stop());
  await startServer(coordinator, "steady");
  const edge = new EdgeUnderTest(coordinator);
  const first = parse((await edge.send("a")).body);
  await coordinator.kill();
  const killedAt = performance.now();
  let served = 0;
  while (performance.now() - killedAt < LEASE_MS / 2) {
    const reply = await edge.sendOnce("a");
    assert.equal(reply.status, 200);
    served += 1;
  }
  assert.ok(served > 10);
  await until("it refuses when its lease is over", async () => {
    const reply = await edge.sendOnce("a");
    return reply.status === 421 && /reason=expired/.test(String(reply.headers["x-belay-refused"]));
  });
  await coordinator.restart();
  const again = parse((await edge.send("a")).body);
  assert.equal(again.epoch, first.epoch);
  assert.ok(again.count > first.count + served);
});

test("S4 a coordinator that is stopped for longer than W(L) and goes on expires nobody", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({ leaseMs: LEASE_MS });
  t.after(async () => coordinator.stop());
  await startServer(coordinator, "patient");
  const edge = new EdgeUnderTest(coordinator);
  assert.equal(parse((await edge.send("k")).body).server, "patient");
  const incarnation = async (): Promise<bigint | undefined> => {
    const servers = await coordinator.control.ask({ case: "servers", value: { service: "world" } });
    return servers.case === "servers" ? servers.value.servers[0]?.incarnation : undefined;
  };
  const before = await incarnation();
  assert.ok(before !== undefined);
  coordinator.process.signal("SIGSTOP");
  await pause(EXPIRY_MS + 2_500);
  coordinator.process.signal("SIGCONT");
  await until("it answers again", async () => (await incarnation()) !== undefined);
  assert.equal(await incarnation(), before);
  edge.forget("k");
  await until("the key is served by the same life of the server", async () => {
    const reply = await edge.send("k");
    return reply.status === 200 && parse(reply.body).server === "patient";
  });
  assert.equal(await incarnation(), before);
});

test("M6 a drain does not wait for a coordinator that is away longer than the lease lives", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({ leaseMs: LEASE_MS });
  t.after(async () => coordinator.stop());
  const server = await startServer(coordinator, "alone");
  const edge = new EdgeUnderTest(coordinator);
  assert.equal(parse((await edge.send("k")).body).server, "alone");
  await coordinator.process.kill();
  server.signal("SIGTERM");
  await until("the server has ended", () => !server.running, LEASE_MS + 10_000);
});
