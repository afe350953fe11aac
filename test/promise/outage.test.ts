import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  BelayUnderTest,
  type Child,
  OpenLoop,
  pause,
  type Reply,
  type Shot,
  until,
} from "@belay/testkit";
import { addServer, placeKeys, runPlain, worldYaml } from "./world.ts";

// The coordinator is away for 60 s: a long lease keeps its keys flowing, the default one stops and recovers.
const leaseMs = 15_000;
const marginMs = 200;
const patient = worldYaml.replace("lease: 3s", "lease: 150s");
const usual = `
service: usual
hosts: [usual.example.com]
key: [{ header: x-player-id }]
ownership: { guard: sdk }
`;
const plain = `
service: plain
hosts: [plain.example.com]
key: [{ header: x-player-id }]
`;
const keys = Array.from({ length: 50 }, (_, index) => `key-${index}`);
const headers = (host: string, key: string): Record<string, string> => ({
  host,
  "x-player-id": key,
});

const next =
  (host: string) =>
  (index: number): Shot => ({
    path: "/",
    headers: headers(host, keys[index % keys.length] ?? ""),
  });

let belay: BelayUnderTest;
let command: Child;
const loads: OpenLoop[] = [];

function track(load: OpenLoop): OpenLoop {
  loads.push(load);
  return load;
}

before(async () => {
  belay = await BelayUnderTest.start({ world: patient, usual, plain });
  await addServer(belay, "w");
  await addServer(belay, "u", { env: { SERVICE: "usual" } });
  command = await runPlain(belay, "p", { service: "plain" });
  await placeKeys(belay, keys);
  await until("all services route", async () => {
    const replies = await Promise.all(
      ["usual", "plain"].flatMap((name) =>
        keys.map((key) => belay.get({ path: "/", headers: headers(`${name}.example.com`, key) })),
      ),
    );
    return replies.every(({ status }) => status === 200);
  });
});

after(async () => {
  await Promise.all(loads.map((load) => load.stop()));
  await belay.stop();
});

test("P1: 60 s without a coordinator", async () => {
  const world = track(
    new OpenLoop({
      port: belay.ports.edge,
      ratePerSecond: 100,
      next: next("world.example.com"),
      isGood: ({ status }: Reply) => status === 200,
    }),
  );
  const replies: Reply[] = [];
  track(
    new OpenLoop({
      port: belay.ports.edge,
      ratePerSecond: 50,
      next: next("usual.example.com"),
      isGood: (reply: Reply) => {
        replies.push(reply);
        return true;
      },
    }),
  );
  const awayAt = performance.now();
  await belay.coordinator?.kill();

  const fresh = await belay.get({ path: "/s/never-seen/" });
  assert.equal(fresh.status, 503, "new keys get 503");
  assert.ok(fresh.headers["retry-after"]);
  assert.equal(fresh.headers["x-belay-reason"], "coordinator-silent");

  await until("the default lease is over", () => replies.at(-1)?.status === 503, leaseMs + 5_000);
  const firstRefused = replies.find(({ status }) => status === 503);
  assert.ok(firstRefused);
  const flowedMs = firstRefused.startedAtMs - awayAt;
  assert.ok(flowedMs >= (2 * leaseMs) / 3 - marginMs - 500, `flowed for ${flowedMs} ms only`);
  assert.ok(flowedMs <= leaseMs + 500, `flowed for ${flowedMs} ms, longer than the lease`);
  assert.match(String(firstRefused.headers["x-belay-reason"]), /^(lease-over|coordinator-silent)$/);
  assert.ok(firstRefused.headers["retry-after"]);

  await pause(Math.max(0, 60_000 - (performance.now() - awayAt)));
  assert.ok(command.running, "the command of `belay run` still runs");
  assert.deepEqual(world.bad.slice(0, 3), [], "a long lease keeps its keys flowing");

  belay.startCoordinator();
  await until("the usual service is back", () => replies.at(-1)?.status === 200, 40_000);
  await until(
    "new keys are placed again",
    async () => (await belay.get({ path: `/s/new-${Math.random()}/` })).status === 200,
    // S4 and P6: nothing is given away within W(L) of the restart, but a new server may be placed on.
    60_000,
  );
  await until(
    "the plain service is back",
    async () =>
      (await belay.get({ path: "/", headers: headers("plain.example.com", keys[0] ?? "") }))
        .status === 200,
    40_000,
  );
  assert.ok(command.running);
  await world.stop();
  assert.deepEqual(world.bad.slice(0, 3), []);
});
