import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { BelayUnderTest, type Child, node, until } from "@belay/testkit";
import { findBreaches, readRuns } from "./record.ts";
import {
  addServer,
  parseAnswer,
  placeKeys,
  plainYaml,
  recordOf,
  registered,
  runPlain,
  worldYaml,
} from "./world.ts";

// A server dies, or is suspended. lease 3 s, margin 0.2 s, clocks off by 1 %.
const waitMs = (3_000 * 1.01) / 0.99 + 200;
let fresh = 0;

/** Asks for all keys, over and over, until each has another owner than `dead`; answers the time. */
async function takenOver(
  belay: BelayUnderTest,
  mine: readonly string[],
  dead: string,
): Promise<number> {
  const from = performance.now();
  const left = new Set(mine);
  await until(
    "all keys of the dead server are served by others",
    async () => {
      await Promise.all(
        [...left].map(async (key) => {
          const reply = await belay.get({ path: `/s/${key}/` }).catch(() => undefined);
          if (reply?.status === 200 && parseAnswer(reply).server !== dead) left.delete(key);
        }),
      );
      return left.size === 0;
    },
    20_000,
  );
  return performance.now() - from;
}

/** Places new keys; answers those that `id` owns, of which there are some. */
async function ownedBy(belay: BelayUnderTest, id: string): Promise<string[]> {
  const keys = Array.from({ length: 60 }, () => `key-${(fresh += 1)}`);
  const owners = await placeKeys(belay, keys);
  const mine = [...owners].filter(([, server]) => server === id).map(([key]) => key);
  assert.ok(mine.length > 0, `${id} owns nothing`);
  return mine;
}

test("guarded servers", async (t) => {
  let belay: BelayUnderTest;
  const children = new Map<string, Child>();
  before(async () => {
    belay = await BelayUnderTest.start({ world: worldYaml });
  });
  after(async () => {
    await belay.stop();
  });
  beforeEach(async () => {
    for (const id of ["a", "b", "c"]) {
      if (children.get(id)?.running !== true) children.set(id, await addServer(belay, id));
    }
  });

  await t.test("I11: after kill -9 its keys answer from another within W(L) + 1 s", async () => {
    const mine = await ownedBy(belay, "a");
    await children.get("a")?.kill();
    const tookMs = await takenOver(belay, mine, "a");
    assert.ok(tookMs <= waitMs + 1_000 + 1_500, `took ${tookMs} ms`);
  });

  await t.test(
    "S2 S5 S6: stopped for longer than L, then continued, it serves nothing it held",
    async () => {
      const mine = await ownedBy(belay, "b");
      const child = children.get("b");
      assert.ok(child);
      child.signal("SIGSTOP");
      await takenOver(belay, mine, "b");
      const atWake = process.hrtime.bigint();
      child.signal("SIGCONT");
      await registered(belay, "b");
      await placeKeys(belay, mine);
      const late = readRuns(recordOf(belay)).filter(
        (run) => run.server === "b" && run.start > atWake && mine.includes(run.key),
      );
      assert.deepEqual(late, []);
    },
  );

  await t.test("I1: the handlers of two servers never overlapped in a key", () => {
    const runs = readRuns(recordOf(belay));
    assert.ok(runs.length > 100);
    assert.deepEqual(findBreaches(runs), []);
  });
});

test("unmodified servers under `belay run`", async (t) => {
  let belay: BelayUnderTest;
  before(async () => {
    belay = await BelayUnderTest.start({ world: plainYaml });
    await runPlain(belay, "a");
  });
  after(async () => {
    await belay.stop();
  });
  const plain = new URL("plain-server.mjs", import.meta.url).pathname;
  const atOnceMs = 1_500; // far below W(L) of 3.26 s: nobody waited for a lease

  async function pidOf(key: string | undefined): Promise<number> {
    const { body } = await belay.get({ path: `/s/${key}/` });
    return (JSON.parse(body) as { pid: number }).pid;
  }

  await t.test("S8: the proven death of the command moves its keys at once", async () => {
    const run = await runPlain(belay, "b");
    const mine = await ownedBy(belay, "b");
    process.kill(await pidOf(mine[0]), "SIGKILL");
    const tookMs = await takenOver(belay, mine, "b");
    assert.ok(tookMs < atOnceMs, `took ${tookMs} ms`);
    assert.equal(await run.exited(), 137);
  });

  await t.test("S8: a daemon that the command left is ended before its keys move", async () => {
    const daemonise = `(setsid sh -c "${node} ${plain} & wait" &)`;
    const script = `${daemonise}; echo main $$; while :; do sleep 1; done`;
    const run = await runPlain(belay, "c", { command: ["sh", "-c", script] });
    const main = Number((await run.printed(/main (\d+)/))[1]);
    const mine = await ownedBy(belay, "c");
    const daemon = await pidOf(mine[0]);
    assert.notEqual(daemon, main);
    process.kill(main, "SIGKILL");
    const tookMs = await takenOver(belay, mine, "c");
    assert.throws(() => process.kill(daemon, 0), "the daemon still runs");
    assert.ok(tookMs < waitMs, `took ${tookMs} ms`);
  });

  await t.test(
    "S8 H16: killing `belay run` itself ends its command, then its keys move at once",
    async () => {
      const run = await runPlain(belay, "d");
      const mine = await ownedBy(belay, "d");
      const pid = await pidOf(mine[0]);
      await run.kill();
      const tookMs = await takenOver(belay, mine, "d");
      assert.ok(tookMs < atOnceMs, `took ${tookMs} ms`);
      assert.throws(() => process.kill(pid, 0), "the command still runs");
    },
  );

  await t.test("I1u: two servers never worked on a key at the same time", () => {
    assert.deepEqual(findBreaches(readRuns(recordOf(belay))), []);
  });
});
