import assert from "node:assert/strict";
import test from "node:test";
import { type Child, pause, until } from "@belay/testkit";
import { CoordinatorUnderTest } from "../coordinator/coordinator-under-test.ts";
import { findBreaches, readRuns } from "../promise/record.ts";
import { EdgeUnderTest } from "./edge-under-test.ts";
import { recordOf, startServer } from "./servers-under-test.ts";

const LOAD_WORKERS = 8;

/** Requests of random keys over two edges until told to stop; errors are part of the plan here. */
function startLoad(edges: readonly EdgeUnderTest[], keys: readonly string[]) {
  const state = { running: true, answered: 0, failed: 0 };
  const workers = Array.from({ length: LOAD_WORKERS }, async (_, worker) => {
    for (let turn = worker; state.running; turn += 1) {
      const key = keys[(turn * 7) % keys.length] ?? "";
      try {
        const reply = await edges[turn % edges.length]?.send(key);
        if (reply?.status === 200) state.answered += 1;
      } catch {
        state.failed += 1;
      }
    }
  });
  return {
    state,
    async stop(): Promise<void> {
      state.running = false;
      await Promise.all(workers);
    },
  };
}

test("I1 I3 under moves, kills, stops and a dying coordinator two servers never act for one key", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({ leaseMs: 2000, drainMs: 500 });
  t.after(async () => coordinator.stop());
  let serial = 0;
  const add = async (): Promise<Child> => startServer(coordinator, `server-${(serial += 1)}`);
  const servers = [await add(), await add(), await add()];
  const edges = [new EdgeUnderTest(coordinator, "a"), new EdgeUnderTest(coordinator, "b")];
  const keys = Array.from({ length: 60 }, (_, index) => `key-${index}`);
  const load = startLoad(edges, keys);
  t.after(async () => load.stop());
  await until("load flows", () => load.state.answered > 200);

  const moveAll = async (): Promise<void> => {
    for (const key of keys) {
      await coordinator.control
        .ask({ case: "move", value: { service: "world", key } })
        .catch(() => undefined);
    }
  };
  await moveAll();
  servers[0]?.signal("SIGSTOP");
  await moveAll();
  await until("its keys are taken over", async () => {
    const list = await coordinator.control.ask({ case: "servers", value: { service: "world" } });
    return list.case === "servers" && list.value.servers.length === 2;
  });
  servers[0]?.signal("SIGCONT");
  await coordinator.kill();
  await pause(300);
  await coordinator.restart();
  await until("the control plane is back", () => coordinator.control.connected);
  await moveAll();
  await servers[1]?.kill();
  await add();
  const before = load.state.answered;
  await until("load flows again", () => load.state.answered > before + 500, 30_000);
  await load.stop();

  const runs = readRuns(recordOf(coordinator));
  assert.ok(runs.length > 500);
  assert.ok(new Set(runs.map(({ server }) => server)).size >= 4, "every server took part");
  assert.ok(new Set(runs.map(({ key, epoch }) => `${key}@${epoch}`)).size > 2 * keys.length);
  assert.deepEqual(findBreaches(runs), []);
});
