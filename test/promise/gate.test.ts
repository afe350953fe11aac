import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BelayUnderTest, pause, until } from "@belay/testkit";
import { WebSocket } from "ws";
import { addServer, worldYaml } from "./world.ts";

// An edge opens when it knows enough; quiet sockets are left alone.
let belay: BelayUnderTest;
const yaml = worldYaml
  .replace("lease: 3s", "lease: 3s, idle: 4s")
  .replace("- match: { prefix: / }", "- match: { prefix: / }\n    timeout: 2s");

before(async () => {
  belay = await BelayUnderTest.create({ world: yaml });
  belay.startControlPlane();
});

after(async () => {
  await belay.stop();
});

test("F1: an edge that starts before the coordinator waits, says so, and opens with the snapshot", async () => {
  await belay.startEdge({ wait: false });
  const [edge] = belay.edges;
  assert.ok(edge);
  await edge.child.printed(/waits for .*coordinator/);
  const port = belay.ports.edge;
  await assert.rejects(belay.get({ path: "/s/ann/" }, port), "the edge does not listen yet");
  belay.startCoordinator();
  await until("the edge is ready", async () => {
    return (await fetch(`http://127.0.0.1:${edge.adminPort}/ready`)).status === 200;
  });
  await addServer(belay, "a");
  await until("it routes", async () => (await belay.get({ path: "/s/ann/" })).status === 200);
});

test("an idle WebSocket outlives the route's time-out, and its key does not idle out (A5)", async () => {
  const socket = new WebSocket(`ws://127.0.0.1:${belay.ports.edge}/s/quiet/`);
  const { promise: opened, resolve, reject } = Promise.withResolvers<void>();
  socket.on("open", () => {
    resolve();
  });
  socket.on("error", reject);
  await opened;
  const owner = async (): Promise<{ state: string; epoch: string }> =>
    (await belay.api("/v1/owner?service=world&key=quiet")) as { state: string; epoch: string };
  const held = await owner();
  assert.equal((await belay.get({ path: "/s/busy/" })).status, 200);
  await pause(9_000); // more than twice the idle time of 4 s and the route's time-out of 2 s
  assert.equal(socket.readyState, socket.OPEN);
  assert.deepEqual(await owner(), held);
  const idle = (await belay.api("/v1/owner?service=world&key=busy")) as { state: string };
  assert.equal(idle.state, "free", "a key that nobody uses idles out");
  const { promise: answered, resolve: answer } = Promise.withResolvers<string>();
  socket.on("message", (data) => {
    answer(String(data));
  });
  socket.send("still there?");
  assert.match(await answered, /still there/);
  socket.close();
});
