import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { encodeEnvoy, decodeEnvoy, typeUrls } from "@belay/envoy-api";
import { OpenLoop, until } from "@belay/testkit";
import type { Draft } from "@belay/xds";
import { ControlPlaneUnderTest, serviceFile } from "./control-plane-under-test.ts";
import { EnvoyUnderTest, needsEnvoy, ServerProcess } from "./envoy-under-test.ts";

const a = { host: "a.test" };
const b = { host: "b.test" };

/** Rewrites one resource by its Envoy JSON. */
const spoil =
  (typeUrl: string, name: string, change: (text: string) => string) =>
  (drafts: Draft[]): Draft[] =>
    drafts.map((draft) => {
      if (draft.typeUrl !== typeUrl || draft.name !== name) return draft;
      const json = change(JSON.stringify(decodeEnvoy(typeUrl, draft.value)));
      return { ...draft, value: encodeEnvoy(typeUrl, JSON.parse(json)) };
    });

describe("a real Envoy on delta ADS", { skip: needsEnvoy }, () => {
  let plane: ControlPlaneUnderTest;
  let xdsPort: number;
  let envoy: EnvoyUnderTest;
  let one: ServerProcess;
  let two: ServerProcess;

  before(async () => {
    [one, two] = await Promise.all([ServerProcess.start("one"), ServerProcess.start("two")]);
    plane = new ControlPlaneUnderTest();
    xdsPort = await plane.server.listen("127.0.0.1", 0);
    envoy = await EnvoyUnderTest.start({ xdsPort });
  });

  after(async () => {
    await envoy?.stop();
    await plane?.server.close();
    await Promise.all([one?.stop(), two?.stop()]);
  });

  test("rule 7: nothing is answered before the first complete build, then all is served", async () => {
    await until("the proxy asks", () => plane.server.status().length > 0);
    assert.equal(plane.server.status()[0]?.served, false);
    assert.equal(await envoy.admin("/ready"), "PRE_INITIALIZING\n");
    plane.endpoints("a", one.address);
    plane.endpoints("b", two.address);
    plane.apply([serviceFile("a"), serviceFile("b")]);
    await until("the port opens", () => envoy.get("/", a));
    assert.equal((await envoy.get("/", a)).body, "one");
    assert.equal((await envoy.get("/", b)).body, "two");
    await until("the proxy has confirmed all", () => plane.inSync);
  });

  test("a host that no service has gets a clear 404", async () => {
    const reply = await envoy.get("/", { host: "nobody.test" });
    assert.equal(reply.status, 404);
    assert.match(reply.body, /no service has this host/);
    const withPort = await envoy.get("/", { host: `a.test:${envoy.port}` });
    assert.equal(withPort.body, "one", "a port in the Host header does not matter");
  });

  test("rule 9: endpoints reach traffic at once", async () => {
    plane.endpoints("a", two.address);
    await until("a moved to two", async () => (await envoy.get("/", a)).body === "two");
    plane.endpoints("a", one.address);
    await until("a moved to one", async () => (await envoy.get("/", a)).body === "one");
  });

  test("rule 2: a changed cluster is active at once, not after 15 s", async () => {
    const edited = spoil(typeUrls.cluster, "a", (json) =>
      json.replace('"connect_timeout":"1s"', '"connect_timeout":"2s"'),
    );
    const started = performance.now();
    plane.apply([serviceFile("a"), serviceFile("b")], edited);
    await until("the edit is active", async () => {
      const dump = await envoy.admin("/config_dump?resource=dynamic_active_clusters");
      return dump.includes('"connect_timeout": "2s"');
    });
    assert.ok(performance.now() - started < 10_000, "far below the 15 s of a missing answer");
    assert.equal(await envoy.stat("cluster.a.assignment_use_cached"), 0);
    await until("confirmed", () => plane.inSync);
  });

  test("rules 1, 6: 100 changes of routes, endpoints and services under load, no request fails", async (t) => {
    const load = new OpenLoop({
      port: envoy.port,
      ratePerSecond: 100,
      next: () => ({ path: "/x", headers: a }),
      isGood: (reply) => reply.status === 200,
    });
    t.after(() => load.stop());
    for (let round = 0; round < 100; round += 1) {
      const routes = `routes:\n  - match: { prefix: /r${round} }\n    timeout: 3s\n`;
      const files = [serviceFile("a", routes), serviceFile("b")];
      // A new service comes and goes: its routes must never be there without its cluster.
      plane.endpoints("c", one.address);
      plane.apply(round % 2 === 0 ? files : [...files, serviceFile("c")]);
      plane.endpoints("a", ...(round % 3 === 0 ? [one.address] : [one.address, two.address]));
      await until(`round ${round} is confirmed`, () => plane.inSync);
    }
    await load.stop();
    assert.deepEqual(load.bad, []);
    assert.ok(load.good > 100, `${load.good} requests`);
    assert.equal(await envoy.stat("listener_manager.listener_modified"), 0);
    assert.equal(await envoy.stat("http.edge.downstream_cx_drain_close"), 0);
  });

  test("rule 1: a route to a new service never answers without its cluster", async (t) => {
    const load = new OpenLoop({
      port: envoy.port,
      ratePerSecond: 100,
      next: () => ({ path: "/", headers: { host: "new.test" } }),
      isGood: (reply) => reply.status === 200 || reply.status === 404,
    });
    t.after(() => load.stop());
    plane.endpoints("new", one.address);
    for (let round = 0; round < 20; round += 1) {
      plane.apply([serviceFile("a"), serviceFile("b"), serviceFile("new")]);
      await until("the new service answers", async () => {
        const reply = await envoy.get("/", { host: "new.test" });
        return reply.status === 200;
      });
      plane.apply([serviceFile("a"), serviceFile("b")]);
      await until("it is gone", async () => {
        const reply = await envoy.get("/", { host: "new.test" });
        return reply.status === 404 && plane.inSync;
      });
    }
    await load.stop();
    assert.deepEqual(load.bad, []);
  });

  test("rules 3, 8: a refused cluster is shown with its source line and holds nobody else up", async () => {
    const bad = spoil(typeUrls.cluster, "a", (json) =>
      json.replace('"connect_timeout":"1s"', '"connect_timeout":"0s"'),
    );
    plane.apply([serviceFile("a"), serviceFile("b"), serviceFile("d")], bad);
    plane.endpoints("d", two.address);
    await until("the others arrive", async () => {
      return (await envoy.get("/", { host: "d.test" })).body === "two";
    });
    assert.equal((await envoy.get("/", a)).body.length, 3, "the old version of a serves on");
    const rejections = plane.server.status()[0]?.types.flatMap((type) => type.rejections) ?? [];
    assert.deepEqual(
      rejections.map(({ name, sources }) => [name, sources.map(({ label }) => label)]),
      [["a", ["a.yaml:1"]]],
    );
    assert.match(rejections[0]?.message ?? "", /ConnectTimeout/);
    const warning = plane.lines.find((line) => line.level === "warn");
    assert.equal(warning?.fields["source"], "a.yaml:1");
    plane.apply([serviceFile("a"), serviceFile("b"), serviceFile("d")]);
    await until("the repaired one is confirmed", () => plane.inSync);
  });

  test("rule 3: refused routes are parked, named, and gone when repaired", async () => {
    const bad = spoil(typeUrls.route, "edge", (json) =>
      json.replace('"domains":["b.test"]', '"domains":["a.test"]'),
    );
    plane.apply([serviceFile("a"), serviceFile("b"), serviceFile("d")], bad);
    await until("the refusal is known", () => plane.server.counters().rejections >= 2);
    const written = plane.server.counters().responses;
    assert.equal((await envoy.get("/", b)).body, "two", "the old routes serve on");
    plane.endpoints("d", one.address);
    await until("endpoints still come", async () => {
      return (await envoy.get("/", { host: "d.test" })).body === "one";
    });
    assert.equal(plane.server.counters().responses, written + 1, "no hot loop");
    const status = plane.server.status()[0];
    const rejection = status?.types.flatMap((type) => type.rejections)[0];
    assert.deepEqual(
      rejection?.sources.map(({ label }) => label),
      ["a.yaml:2"],
    );
    plane.apply([serviceFile("a"), serviceFile("b"), serviceFile("d")]);
    await until("repaired", () => plane.inSync);
  });

  test("rules 5, 7: after a restart of the server nothing unchanged is sent again", async () => {
    await plane.server.close();
    assert.equal((await envoy.get("/", b)).body, "two", "without a control plane all goes on");
    const next = new ControlPlaneUnderTest();
    next.endpoints("a", two.address);
    next.apply([serviceFile("a"), serviceFile("b"), serviceFile("d")]);
    await next.server.listen("127.0.0.1", xdsPort);
    plane = next;
    await until("the new endpoints of a arrive", async () => {
      return (await envoy.get("/", a)).body === "two";
    });
    await until("all is confirmed", () => plane.inSync);
    assert.equal(plane.server.counters().responses, 1, "one assignment, and nothing else");
    assert.equal((await envoy.get("/", b)).body, "two", "endpoints not known yet are kept");
    assert.equal((await envoy.get("/", { host: "d.test" })).body, "one");
  });
});
