import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { until } from "@belay/testkit";
import { CoordinatorUnderTest } from "../coordinator/coordinator-under-test.ts";
import { findBreaches, readRuns } from "../promise/record.ts";
import { EdgeUnderTest } from "./edge-under-test.ts";
import { recordOf, startServer } from "./servers-under-test.ts";

interface Answer {
  readonly server: string;
  readonly epoch: string;
  readonly count: number;
}

const parse = (body: string): Answer => JSON.parse(body) as Answer;

async function startTwo(): Promise<{ coordinator: CoordinatorUnderTest; edge: EdgeUnderTest }> {
  const coordinator = await CoordinatorUnderTest.start({ drainMs: 1000 });
  const edge = new EdgeUnderTest(coordinator);
  await startServer(coordinator, "one");
  assert.equal(parse((await edge.send("a")).body).server, "one");
  await startServer(coordinator, "two");
  return { coordinator, edge };
}

const move = async (coordinator: CoordinatorUnderTest, key: string, to: string) =>
  coordinator.control.ask({
    case: "move",
    value: { service: "world", key, toServerId: to },
  });

test("M3 a request in hand ends at the old owner before the new one starts", async (t) => {
  const { coordinator, edge } = await startTwo();
  t.after(async () => coordinator.stop());
  const inHand = edge.sendOnce("a", { path: "/work/500" });
  await until("it has begun", async () => {
    const servers = await coordinator.control.ask({ case: "servers", value: { service: "world" } });
    return servers.case === "servers";
  });
  await move(coordinator, "a", "two");
  edge.forget("a");
  const next = edge.send("a");
  const [first, second] = await Promise.all([inHand, next]);
  assert.equal(first.status, 200);
  assert.equal(parse(first.body).server, "one");
  assert.equal(parse(second.body).server, "two");
  assert.ok(second.startedAtMs + second.tookMs >= first.startedAtMs + first.tookMs);
  assert.deepEqual(findBreaches(readRuns(recordOf(coordinator))), []);
});

test("M3 G6 a request that outlasts the drain is cut, and its key moves", async (t) => {
  const { coordinator, edge } = await startTwo();
  t.after(async () => coordinator.stop());
  const outcome = edge.sendOnce("a", { path: "/work/8000" });
  const second = edge.sendOnce("a");
  assert.equal((await second).status, 200);
  await move(coordinator, "a", "two");
  edge.forget("a");
  assert.equal(parse((await edge.send("a")).body).server, "two");
  const cut = await outcome;
  assert.equal(cut.status, 503);
  assert.equal(cut.headers["x-belay-reason"], "outcome-unknown");
});

test("W2 a socket closes with 4421 after the message in hand, its key is then elsewhere", async (t) => {
  const { coordinator, edge } = await startTwo();
  t.after(async () => coordinator.stop());
  const socket = await edge.socket("a");
  await once(socket, "open");
  socket.send("300");
  socket.send("0");
  const answers: Answer[] = [];
  socket.on("message", (data) => answers.push(parse(String(data))));
  const closed = once(socket, "close");
  await until("the messages are in hand", () => answers.length > 0 || socket.bufferedAmount === 0);
  await move(coordinator, "a", "two");
  const [code] = await closed;
  assert.equal(code, 4421);
  assert.ok(answers.length > 0);
  edge.forget("a");
  assert.equal(parse((await edge.send("a")).body).server, "two");
});

test("W1 a handshake for a key that is not owned is answered 421", async (t) => {
  const { coordinator, edge } = await startTwo();
  t.after(async () => coordinator.stop());
  await edge.locate("a");
  await move(coordinator, "a", "two");
  await until("it has moved", async () => (await edge.resolveOnce("a")).outcome === 1);
  const socket = await edge.socket("a");
  const [, response] = await once(socket, "unexpected-response");
  assert.equal(response.statusCode, 421);
  assert.match(response.headers["x-belay-refused"], /reason=moved/);
  response.destroy();
});

test("M6 on SIGTERM the keys move away, no request fails, the process ends with 0", async (t) => {
  const { coordinator, edge } = await startTwo();
  t.after(async () => coordinator.stop());
  const leaving = await startServer(coordinator, "leaving");
  const keys = Array.from({ length: 200 }, (_, index) => `player-${index}`);
  await Promise.all(keys.map(async (key) => edge.send(key)));
  const running = { now: true };
  const failures: string[] = [];
  const load = Array.from({ length: 8 }, async (_, worker) => {
    for (let turn = worker; running.now; turn += 8) {
      const key = keys[turn % keys.length] ?? "";
      const reply = await edge.send(key).catch((error: unknown) => String(error));
      if (typeof reply === "string" || reply.status !== 200) failures.push(JSON.stringify(reply));
    }
  });
  leaving.signal("SIGTERM");
  assert.equal(await leaving.exited(), 0);
  running.now = false;
  await Promise.all(load);
  assert.deepEqual(failures, []);
  for (const key of keys) assert.notEqual(parse((await edge.send(key)).body).server, "leaving");
  assert.deepEqual(findBreaches(readRuns(recordOf(coordinator))), []);
});
