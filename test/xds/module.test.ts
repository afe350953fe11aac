import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { until } from "@belay/testkit";
import { type EdgeOptions, waitingRoomEndpoint } from "@belay/xds";
import { ControlPlaneUnderTest } from "./control-plane-under-test.ts";
import { EnvoyUnderTest, needsModule, ServerProcess } from "./envoy-under-test.ts";

const module = { name: "belay" };
const options: EdgeOptions = { module, accessLog: "hash" };

const service = (more = "") => ({
  file: "world.yaml",
  text: `service: world
hosts: [world.test]
key:
  - path: /s/{key}
routes:
  - match: { path: /healthz }
    respond: { status: 200, body: ok }
${more}`,
});

describe("the translation with Belay's module", { skip: needsModule }, () => {
  let plane: ControlPlaneUnderTest;
  let envoy: EnvoyUnderTest;
  let server: ServerProcess;
  const world = { host: "world.test" };

  before(async () => {
    server = await ServerProcess.start("served");
    plane = new ControlPlaneUnderTest(options, "edge", waitingRoomEndpoint());
    const xdsPort = await plane.server.listen("127.0.0.1", 0);
    plane.endpoints("world", server.address);
    plane.apply([service()]);
    envoy = await EnvoyUnderTest.start({ xdsPort, module });
    await until("the edge opens without a coordinator", () => envoy.get("/healthz", world));
  });

  after(async () => {
    await envoy?.stop();
    await plane?.server.close();
    await server?.stop();
  });

  test("every resource is accepted", async () => {
    await until("all is confirmed", () => plane.inSync);
    assert.equal((await envoy.get("/healthz", world)).body, "ok");
    assert.equal((await envoy.get("/", { host: "other.test" })).status, 404);
  });

  test("the service has its server and the waiting room", async () => {
    const text = await envoy.admin("/clusters");
    assert.match(text, new RegExp(`^world::${server.address}::health_flags::healthy$`, "m"));
    assert.match(text, /^world::envoy:\/\/belay_room\/room::health_flags::healthy$/m);
  });

  test("the module reads its route: no key, and no snapshot of a coordinator", async () => {
    const keyless = await envoy.get("/x", world);
    assert.deepEqual([keyless.status, keyless.headers["x-belay-reason"]], [400, "no-key"]);
    const keyed = await envoy.get("/s/alice/x", world);
    assert.deepEqual([keyed.status, keyed.headers["x-belay-reason"]], [503, "no-snapshot"]);
  });

  test("rule 6: a changed service reaches the module, and the listener stays", async () => {
    plane.apply([service("ownership: { unknown-key: 410 }\n")]);
    await until("confirmed", () => plane.inSync);
    await until("the route is new", async () => {
      const dump = await envoy.admin("/config_dump?resource=dynamic_route_configs");
      return dump.includes(String.raw`\"unknown_key_status\":410`);
    });
    assert.equal(await envoy.stat("listener_manager.listener_modified"), 0);
  });
});
