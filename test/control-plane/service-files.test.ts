import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { typeUrls } from "@belay/envoy-api";
import { freePorts, until } from "@belay/testkit";
import { CoreUnderTest } from "./core-under-test.ts";

const text = (name: string, host = `${name}.test`, more = ""): string =>
  `service: ${name}\nhosts: [${host}]\nkey: { header: x-key }\n${more}`;

/** A core whose coordinator is away: service files must work without it. */
async function start(
  t: TestContext,
  files: Readonly<Record<string, string>>,
): Promise<CoreUnderTest> {
  const [coordinatorPort = 1] = await freePorts(1);
  const core = await CoreUnderTest.start({ coordinatorPort, files, ownFolder: true });
  t.after(() => core.stop());
  return core;
}

const clusters = (proxy: { names(typeUrl: string): string[] }) => proxy.names(typeUrls.cluster);

test("files become resources; changes reach proxies, unchanged services are not sent again", async (t) => {
  const core = await start(t, { "a.yaml": text("a"), "b.yaml": text("b") });
  const proxy = core.proxy();
  await until("both services", () => clusters(proxy).join() === "a,b");
  await until("routes", () => proxy.names(typeUrls.route).length === 1);
  const before = proxy.received.length;
  core.write("c.yml", text("c"));
  await until("the new one", () => clusters(proxy).join() === "a,b,c");
  const later = proxy.received.slice(before);
  assert.ok(!later.includes("Cluster a") && !later.includes("Cluster b"), later.join());
});

test("rule 8: a file that breaks keeps its last good text, others go on; the API names the line", async (t) => {
  const core = await start(t, { "a.yaml": text("a"), "b.yaml": text("b") });
  const proxy = core.proxy();
  await until("both services", () => clusters(proxy).join() === "a,b");
  core.write("a.yaml", text("a", "a.test", "ownership: { lease: 1 }\n"));
  core.write("c.yaml", text("c"));
  await until("the third", () => clusters(proxy).join() === "a,b,c");
  const { body } = await core.call("GET", "/v1/services/a");
  assert.equal(body["state"], "last-good");
  assert.deepEqual(body["problems"], [
    {
      severity: "error",
      file: join(core.services, "a.yaml"),
      line: 4,
      column: 14,
      path: "ownership.lease",
      what: "1 has no unit",
      fix: "write 1s if you mean that; units: ms, s, m, h, d",
    },
  ]);
  core.write("a.yaml", text("a"));
  await until("it is good again", async () => {
    const again = await core.call("GET", "/v1/services/a");
    return again.body["state"] === "serving";
  });
});

test("rule 7: a folder that is emptied or vanishes changes nothing, and alarms", async (t) => {
  const core = await start(t, { "a.yaml": text("a"), "b.yaml": text("b") });
  const proxy = core.proxy();
  await until("both services", () => clusters(proxy).join() === "a,b");
  rmSync(join(core.services, "b.yaml"));
  await until("one file of two takes its service with it", () => clusters(proxy).join() === "a");
  rmSync(join(core.services, "a.yaml"));
  await until("alarm", () => /no service file any more/.test(core.plane.status().alarm));
  assert.deepEqual(clusters(proxy), ["a"]);
  rmSync(core.services, { recursive: true });
  await until("alarm", () => /cannot read/.test(core.plane.status().alarm));
  assert.deepEqual(clusters(proxy), ["a"]);
  const metrics = await core.call("GET", "/metrics");
  assert.match(String(metrics.body["text"]), /belay_control_plane_alarm 1/);
  mkdirSync(core.services);
  core.write("z.yaml", text("z"));
  await until("the folder is followed again", () => clusters(proxy).join() === "z");
  assert.equal(core.plane.status().alarm, "");
});

test("a folder that is swapped by a rename is followed", async (t) => {
  const core = await start(t, { "a.yaml": text("a") });
  const proxy = core.proxy();
  await until("the service", () => clusters(proxy).join() === "a");
  renameSync(core.services, `${core.services}.old`);
  mkdirSync(core.services);
  core.write("b.yaml", text("b"));
  await until("the other folder's service", () => clusters(proxy).join() === "b");
  core.write("c.yaml", text("c"));
  await until("later changes", () => clusters(proxy).join() === "b,c");
});

test("rule 7: a restart serves the last good state at once, though the folder is gone or broken", async (t) => {
  const core = await start(t, { "a.yaml": text("a"), "b.yaml": text("b") });
  await until("kept on disk", () => core.plane.book().files.length === 2);
  core.write("b.yaml", "service: b\n");
  await until("the fault is seen", () => core.plane.book().files[1]?.state === "last-good");
  await core.restart();
  const proxy = core.proxy();
  await until("both services", () => clusters(proxy).join() === "a,b");
  assert.equal(core.plane.book().files[1]?.state, "last-good");
  rmSync(core.services, { recursive: true });
  await core.restart();
  const again = core.proxy();
  await until("both services", () => clusters(again).join() === "a,b");
  const { body } = await core.call("GET", "/v1/services");
  assert.match(JSON.stringify(body["folder"]), /cannot read/);
});

test("a first start without any good folder answers no proxy", async (t) => {
  const [coordinatorPort = 1] = await freePorts(1);
  const core = await CoreUnderTest.start({ coordinatorPort, ownFolder: true, files: {} });
  t.after(() => core.stop());
  rmSync(core.services, { recursive: true });
  await core.restart();
  const proxy = core.proxy();
  await until("it asks", () => core.plane.proxies().length === 1);
  assert.equal(core.plane.status().state, "starting");
  assert.deepEqual(proxy.received, []);
  mkdirSync(core.services);
  core.write("a.yaml", text("a"));
  await until("the first build", () => clusters(proxy).join() === "a");
});

test("rule 3: a refusal is shown with proxy and source line, and others are served", async (t) => {
  const core = await start(t, { "a.yaml": text("a"), "b.yaml": `# about b\n${text("b")}` });
  const proxy = core.proxy();
  proxy.refuses.set("b", "Error adding/updating cluster(s) b: no such thing");
  await until("the other one", () => clusters(proxy).join() === "a");
  const nacks = await until("the refusal", async () => {
    const { body } = await core.call("GET", "/v1/services/b");
    const found = body["nacks"];
    return Array.isArray(found) && found.length > 0 && found;
  });
  const [nack] = nacks;
  assert.equal(nack.proxy, "edge-1");
  assert.equal(nack.type, "Cluster");
  assert.equal(nack.file, join(core.services, "b.yaml"));
  assert.equal(nack.line, 2);
  assert.match(nack.message, /no such thing/);
  const { body } = await core.call("GET", "/v1/proxies");
  assert.match(JSON.stringify(body), /no such thing/);
});
