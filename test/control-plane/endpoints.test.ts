import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { typeUrls } from "@belay/envoy-api";
import { until } from "@belay/testkit";
import { CoordinatorUnderTest } from "../coordinator/coordinator-under-test.ts";
import { CoreUnderTest } from "./core-under-test.ts";
import { registerServer } from "./registered-server.ts";

const world = "service: world\nkey: { header: x-key }\nownership: { guard: sdk, lease: 3s }\n";

async function start(
  t: TestContext,
): Promise<{ coordinator: CoordinatorUnderTest; core: CoreUnderTest }> {
  const coordinator = await CoordinatorUnderTest.start();
  t.after(() => coordinator.stop());
  const files = { "world.yaml": world };
  const core = await CoreUnderTest.start({ coordinatorPort: coordinator.port, files });
  t.after(() => core.stop());
  await until("the feed is followed", () => core.plane.link.status().feed === "live");
  await until("the service is defined", () => core.plane.link.book.services.has("world"));
  return { coordinator, core };
}

test("registered servers are endpoints until their incarnation has ended, draining or not", async (t) => {
  const { coordinator, core } = await start(t);
  const proxy = core.proxy();
  await until("no endpoints yet", () => proxy.addresses("world")?.length === 0);
  const a = await registerServer(coordinator, "world", { id: "a", address: "127.0.0.1:9001" });
  await registerServer(coordinator, "world", { id: "b", address: "127.0.0.1:9002" });
  await until("both", () => proxy.addresses("world")?.join() === "127.0.0.1:9001,127.0.0.1:9002");
  const drained = await core.call("POST", "/v1/drains", { server: "a" });
  assert.deepEqual(
    [drained.status, drained.body],
    [202, { service: "world", server: "a", remaining: 0 }],
  );
  await until("it drains", async () => {
    const { body } = await core.call("GET", "/v1/servers?service=world");
    return /"id":"a".*?"state":"draining"/.test(JSON.stringify(body));
  });
  assert.equal(proxy.addresses("world")?.length, 2);
  a.connection.send({
    case: "leave",
    value: { incarnation: a.incarnation, secret: Buffer.alloc(16, 1) },
  });
  await until("one left", () => proxy.addresses("world")?.join() === "127.0.0.1:9002");
});

test("rule 7: neither a restart of the coordinator nor one of the control plane empties endpoints", async (t) => {
  const { coordinator, core } = await start(t);
  await registerServer(coordinator, "world", { id: "a", address: "127.0.0.1:9001" });
  const proxy = core.proxy();
  const all = "127.0.0.1:9001";
  await until("the server", () => proxy.addresses("world")?.join() === all);
  await coordinator.kill();
  await until("the loss is seen", () => core.plane.link.status().feed === "last-known");
  assert.equal(proxy.addresses("world")?.join(), all);
  // The control plane starts while the coordinator is away: it says nothing of endpoints.
  await core.restart();
  const second = core.proxy("edge-2");
  await until("its clusters", () => second.names(typeUrls.cluster).join() === "world");
  const status = await core.call("GET", "/v1/status");
  assert.match(JSON.stringify(status.body), /"endpoints":"none"/);
  assert.equal(second.addresses("world"), undefined);
  await coordinator.restart();
  await until(
    "endpoints, when the coordinator is back",
    () => second.addresses("world")?.join() === all,
  );
  assert.equal(core.plane.link.status().feed, "live");
});

test("a feed goes on where it was, and heals after a coordinator with another store", async (t) => {
  const { coordinator, core } = await start(t);
  const proxy = core.proxy();
  await registerServer(coordinator, "world", { id: "a", address: "127.0.0.1:9001" });
  await until("the server", () => proxy.addresses("world")?.length === 1);
  await coordinator.restart();
  await registerServer(coordinator, "world", { id: "b", address: "127.0.0.1:9002" });
  await until("also the one after the restart", () => proxy.addresses("world")?.length === 2);
  assert.ok(!core.lines.some(({ message }) => message.includes("feed is broken")));
});

test("services follow their files at the coordinator, one refusal blocks no other", async (t) => {
  const { coordinator, core } = await start(t);
  await registerServer(coordinator, "world", { id: "a", address: "127.0.0.1:9001" });
  // Guarded servers live, so the guard cannot go; the other service is defined all the same.
  core.write("world.yaml", world.replace("guard: sdk", "guard: none"));
  core.write("chat.yaml", "service: chat\nhosts: [chat.test]\nkey: none\n");
  await until("the other service", () => core.plane.link.book.services.has("chat"));
  const problems = await until("the refusal is told", async () => {
    const { body } = await core.call("GET", "/v1/services/world");
    return JSON.stringify(body["problems"]).includes("guard-change") && body["problems"];
  });
  assert.match(JSON.stringify(problems), /"line":3,"column":14,"path":"ownership.guard"/);
  core.write("world.yaml", world);
  await until("all is well", () => core.plane.definitionProblems().size === 0);
  const gone = await core.call("DELETE", "/v1/services/chat");
  assert.deepEqual(gone.body, { removed: "chat" });
  await until("the coordinator forgets it", () => !core.plane.link.book.services.has("chat"));
});

test("rule 7: a start that finds no files where the coordinator knows services tells proxies nothing", async (t) => {
  const { coordinator, core: first } = await start(t);
  await first.stop();
  const core = await CoreUnderTest.start({ coordinatorPort: coordinator.port });
  t.after(() => core.stop());
  await until("alarm", () => /knows 1 services \(world\)/.test(core.plane.status().alarm));
  const proxy = core.proxy();
  await until("it asks", () => core.plane.proxies().length === 1);
  assert.equal(core.plane.status().state, "starting");
  assert.deepEqual(proxy.received, []);
  assert.ok(core.plane.link.book.services.has("world"));
  core.write("world.yaml", world);
  await until("its file is back", () => proxy.names(typeUrls.cluster).join() === "world");
  assert.equal(core.plane.status().alarm, "");
});

test("a first start without any service serves an empty configuration once the coordinator agrees", async (t) => {
  const coordinator = await CoordinatorUnderTest.start();
  t.after(() => coordinator.stop());
  const core = await CoreUnderTest.start({ coordinatorPort: coordinator.port });
  t.after(() => core.stop());
  const proxy = core.proxy();
  await until("the routes", () => proxy.names(typeUrls.route).join() === "edge");
  assert.deepEqual(proxy.names(typeUrls.cluster), []);
});
