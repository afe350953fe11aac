import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "@belay/testkit";
import { CoordinatorUnderTest } from "../coordinator/coordinator-under-test.ts";
import { ProxyUnderTest } from "../coordinator/proxy-under-test.ts";
import {
  proxiesSchema,
  serversSchema,
  shardSchema,
  shardsSchema,
} from "../../packages/belay/src/admin/schemas.ts";
import { CoreUnderTest } from "./core-under-test.ts";
import { registerServer } from "./registered-server.ts";

const world = "service: world\nkey: { header: x-key }\nownership: { guard: sdk, lease: 10s }\n";

test("operators see owners, page through shards, move a key and drain a server", async (t) => {
  const coordinator = await CoordinatorUnderTest.start();
  t.after(() => coordinator.stop());
  const files = { "world.yaml": world };
  const core = await CoreUnderTest.start({ coordinatorPort: coordinator.port, files });
  t.after(() => core.stop());
  await until("the service is defined", () => core.plane.link.book.services.has("world"));
  await registerServer(coordinator, "world", { id: "a", address: "127.0.0.1:9001" });
  const edge = new ProxyUnderTest(coordinator, "edge-1");
  await until("the edge follows the feed", () => edge.complete);
  const keys = ["k1", "k2", "k3", "with space", "ä/ö"];
  for (const key of keys) await edge.resolve(key);
  const get = async <T>(path: string, schema: { parse(body: unknown): T }): Promise<T> =>
    schema.parse((await core.call("GET", path)).body);

  const owner = await get(`/v1/owner?service=world&key=${encodeURIComponent("ä/ö")}`, shardSchema);
  assert.deepEqual(
    [owner.key, owner.state, owner.server, owner.address],
    ["ä/ö", "owned", "a", "127.0.0.1:9001"],
  );
  const seen: string[] = [];
  let after = "";
  for (let page = 0; page < 10; page += 1) {
    const query = new URLSearchParams({
      service: "world",
      limit: "2",
      ...(after === "" ? {} : { after }),
    });
    const { shards, next } = await get(`/v1/shards?${query.toString()}`, shardsSchema);
    seen.push(...shards.map(({ key }) => key));
    if (next === undefined) break;
    after = next;
  }
  assert.deepEqual(seen, keys, "byte order");

  await registerServer(coordinator, "world", { id: "b", address: "127.0.0.1:9002" });
  const moved = await core.call("POST", "/v1/moves", { service: "world", key: "k1", to: "b" });
  assert.deepEqual([moved.status, moved.body["from"]], [202, "a"]);
  await until("it has moved", async () => {
    const { state, server } = await get("/v1/owner?service=world&key=k1", shardSchema);
    return state === "owned" && server === "b";
  });
  const again = await core.call("POST", "/v1/moves", { service: "world", key: "k1", to: "b" });
  assert.deepEqual([again.status, again.body["code"]], [409, "already-there"]);

  const explained = await core.call("POST", "/v1/explain", {
    method: "GET",
    url: "/",
    headers: [["X-Key", "k1"]],
  });
  assert.match(JSON.stringify(explained.body["steps"]), /owner: b at 127\.0\.0\.1:9002, epoch \d+/);

  const drain = await core.call("POST", "/v1/drains", { service: "world", server: "a" });
  assert.deepEqual([drain.status, drain.body["remaining"]], [202, 4]);
  await until("a is empty", async () => {
    const { servers } = await get("/v1/servers?service=world", serversSchema);
    return servers.some((it) => it.id === "a" && it.state === "draining" && it.shards === 0);
  });

  const stream = core.proxy("edge-1");
  await until("its stream", () => stream.received.length > 0);
  const { proxies } = await get("/v1/proxies", proxiesSchema);
  assert.deepEqual(
    proxies.map(({ name }) => name),
    ["edge-1"],
  );
  assert.equal(proxies[0]?.coordinator?.connected, true);
  assert.equal(proxies[0]?.xds?.envoyVersion, "1.40.0");
});
