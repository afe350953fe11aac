import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { OpenLoop, until } from "@belay/testkit";
import { CoordinatorUnderTest } from "../coordinator/coordinator-under-test.ts";
import { EnvoyUnderTest, needsEnvoy, Upstream } from "../xds/envoy-under-test.ts";
import { CoreUnderTest } from "./core-under-test.ts";
import { registerServer } from "./registered-server.ts";

const guard = "ownership: { guard: sdk, lease: 30s }\n";
const world = `service: world
hosts: [world.test, "*.world.test"]
key: { header: x-player-id }
${guard}routes:
  - match: { path: /healthz }
    respond: { status: 200, body: fine }
  - match: { prefix: /lobby }
    key: none
`;
const other = (timeout: string): string =>
  `service: other\nhosts: [other.test]\nkey: none\n${guard}routes:\n  - match: { prefix: /x }\n    timeout: ${timeout}\n`;

describe("files to a real Envoy", { skip: needsEnvoy }, () => {
  let coordinator: CoordinatorUnderTest;
  let core: CoreUnderTest;
  let envoy: EnvoyUnderTest;
  const upstreams: Upstream[] = [];

  const serve = async (service: string): Promise<void> => {
    const upstream = await Upstream.start((_, response) => response.end(service));
    upstreams.push(upstream);
    await registerServer(coordinator, service, { id: `${service}-1`, address: upstream.address });
  };
  const inSync = (): Promise<unknown> =>
    until("the proxy confirmed all", () => {
      const [proxy] = core.plane.proxies();
      return proxy?.inSync === true && core.plane.rejections().length === 0;
    });

  before(async () => {
    coordinator = await CoordinatorUnderTest.start();
    const files = { "world.yaml": world, "other.yaml": other("1s") };
    core = await CoreUnderTest.start({ coordinatorPort: coordinator.port, files });
    await until("the services are defined", () => core.plane.link.book.services.size === 2);
    await serve("world");
    await serve("other");
    envoy = await EnvoyUnderTest.start({ xdsPort: core.plane.xdsPort });
    await until("the edge serves", async () => {
      const reply = await envoy.get("/x", { host: "other.test" });
      return reply.body === "other";
    });
  });

  after(async () => {
    await envoy?.stop();
    await core?.stop();
    await coordinator?.stop();
    for (const upstream of upstreams) upstream.stop();
  });

  test("the edge does what explain says", async () => {
    const requests: readonly (readonly [path: string, host: string])[] = [
      ["/healthz", "world.test"],
      ["/lobby/x", "world.test"],
      ["/lobby/x", "eu.world.test"],
      ["/lobbyist", "world.test"],
      ["/x", "other.test:8080"],
      ["/", "OTHER.test"],
      ["/", "nobody.test"],
    ];
    for (const [path, host] of requests) {
      const url = `http://${host}${path}`;
      const { body } = await core.call("POST", "/v1/explain", { method: "GET", url });
      const reply = await envoy.get(path, { host });
      // This Envoy runs without the module, so what the module would refuse goes through.
      const expected =
        body["outcome"] === "respond"
          ? [200, "fine"]
          : body["outcome"] === "no-service"
            ? [404, reply.body]
            : [200, body["service"]];
      assert.deepEqual([reply.status, reply.body], expected, url);
    }
  });

  test("twenty changes of a service and of another one fail no request", async () => {
    await inSync();
    const load = new OpenLoop({
      port: envoy.port,
      ratePerSecond: 100,
      next: () => ({ path: "/lobby", headers: { host: "world.test" } }),
      isGood: ({ status, body }) => status === 200 && body === "world",
    });
    for (let round = 1; round <= 20; round += 1) {
      core.write("other.yaml", other(`${round + 1}s`));
      core.write("world.yaml", world.replace("body: fine", `body: fine-${round}`));
      await until("the change is there", async () => {
        const reply = await envoy.get("/healthz", { host: "world.test" });
        return reply.body === `fine-${round}`;
      });
    }
    await load.stop();
    assert.deepEqual(load.bad, []);
    assert.ok(load.good > 0);
    await inSync();
  });

  test("the full example of the reference is accepted whole", async () => {
    const page = readFileSync(
      join(import.meta.dirname, "../../docs/reference/service-file.md"),
      "utf8",
    );
    const [, , full = ""] = /```yaml\n(.*?)```.*?```yaml\n(.*?)```/s.exec(page) ?? [];
    assert.match(full, /close-code/);
    core.write("full.yaml", full.replace("service: world", "service: full"));
    await until("it is served", () => core.plane.served().some(({ name }) => name === "full"));
    await inSync();
    assert.deepEqual(
      core.plane.book().files.flatMap(({ problems }) => problems),
      [],
    );
  });
});
