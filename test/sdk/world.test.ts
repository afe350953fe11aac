import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import test from "node:test";
import { Child, fire, runTypeScript } from "@belay/testkit";
import { CoordinatorUnderTest } from "../coordinator/coordinator-under-test.ts";
import { EdgeUnderTest } from "./edge-under-test.ts";

interface Seen {
  readonly player: string;
  readonly server: string;
  readonly epoch: number;
  readonly count: number;
  readonly x: number;
  readonly y: number;
}

const parse = (body: string): Seen => JSON.parse(body) as Seen;
const main = join(import.meta.dirname, "../../examples/world/src/main.ts");
const json = { accept: "application/json", "content-type": "application/x-protobuf" };
/** The message of the README: action `count`, envelope with player alice. */
const rpc = Buffer.from("\u0012\u0000\u0062\u0011\u000a\u0006belay1\u0010\u0001\u002a\u0005alice");

test("the demo keeps a player over HTTP, RPC and WebSocket, under both forms of the path", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({ name: "world" });
  t.after(async () => coordinator.stop());
  const world = new Child("world", [...runTypeScript, main], {
    env: { PORT: "auto", BELAY_COORDINATOR: coordinator.address, BELAY_SERVER_ID: "world-a" },
  });
  coordinator.onClose(async () => world.kill());
  const [, port = "0"] = await world.printed(/world-a is ready on http:\/\/127\.0\.0\.1:(\d+)/);
  assert.equal((await fire(Number(port), { path: "/healthz" })).body, "ok\n");
  assert.equal((await fire(Number(port), { path: "/" })).status, 421);

  const edge = new EdgeUnderTest(coordinator);
  const post = { method: "POST" };
  assert.equal(parse((await edge.send("alice", { ...post, path: "/count" })).body).count, 1);
  assert.equal(
    parse((await edge.send("alice", { ...post, path: "/s/alice/count" })).body).count,
    2,
  );
  const body = '{"dx":1,"dy":-2}';
  const moved = parse((await edge.send("alice", { ...post, path: "/move", body })).body);
  assert.deepEqual([moved.x, moved.y, moved.server, moved.player], [1, -2, "world-a", "alice"]);
  const asked = await edge.send("alice", { ...post, path: "/rpc", body: rpc, headers: json });
  assert.equal(parse(asked.body).count, 3);
  const broken = { ...post, path: "/rpc", body: "\u00ff\u00ff", headers: json };
  assert.equal((await edge.send("alice", broken)).status, 400);

  const socket = await edge.socket("alice");
  await once(socket, "open");
  socket.send("count");
  const [message] = await once(socket, "message");
  assert.equal(parse(String(message)).count, 4);
  socket.close();
  const looked = parse((await edge.send("alice", { path: "/s/alice/" })).body);
  assert.deepEqual([looked.count, looked.x, looked.y], [4, 1, -2]);
  assert.equal(looked.epoch, moved.epoch);

  world.signal("SIGTERM");
  assert.equal(await world.exited(), 0);
});
