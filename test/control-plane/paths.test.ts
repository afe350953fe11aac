import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as fc from "fast-check";
import { until } from "@belay/testkit";
import { CoordinatorUnderTest } from "../coordinator/coordinator-under-test.ts";
import { EnvoyUnderTest, needsEnvoy, Upstream } from "../xds/envoy-under-test.ts";
import { CoreUnderTest } from "./core-under-test.ts";
import { registerServer } from "./registered-server.ts";

const paths = [
  "/s/a/../b /s/a/.. /s/a/. /s/a/../ /.. /../.. /. /s/... /s/..b /s/a..",
  "/s/%2e%2e/b /s/%2E%2e/b /s/.%2e/b /s/%2e/b /s/a/%2E%2E/ /s/%2e%2e?x /s/%252e%252e/b",
  "// //a ///a/../b /s//../a /s/a//..//b /s/%2f../b /s/a%2F..%2Fb /s/a/..%2fb",
  String.raw`/s\a\..\b /s/a\ /\ /s/%5c../b /s\..;x/b /s/a/..;x\y /s/a?b\c`,
  "/s/a;x/b /s/..;/b /s/a/..;b /s/.;x/b /s/..;..;/b /s/...;/b /s/%2e%2e;/b /s/..%3b/b /s/x/..;%2fb/c",
  "/s/%41%42 /s/%7e /s/%2d%5f /s/%c3%a9 /s/%C3%A9 /s/%zz /s/% /s/%4 /s/a%00b /s/a?b=%00 /s/%%34%31 /s/%0%30 /s/%%%34%31",
  `/s/{a}|^\`"<>' /s/a?{a}|^"<> /s/[a]!$&'()*+,;=:@ /s/a?b/../c /s/.?x/.. /? /?/../x /a?x=%2e%2e/`,
].flatMap((line) => line.split(" "));

const hosts = ["a.test", "A.Test:80", "a.test:", "a.test.", "a.test.:80", "x.w.test", "x.w.test."];
const moreHosts = ["w.test", ".w.test", "a.b.w.test", "[::1]:80", "[::1].:80", "a.test:80:90"];
const dots = [
  "a.test..",
  "a.test..:80",
  "a.test.:",
  "a.test.:80:90",
  "x.w.test.:80",
  ".",
  "..",
  ".:80",
];

const pieces = [
  "! \" $ % & ' ( ) * + , - . / 0 9 : ; < = > ? @ A F G Z [ \\ ] ^ _ ` a f g z { | } ~",
  "/.. /. /..; %2e %2E %2 %00 %25 %2f %5C %41 %zz / .. ; %",
].flatMap((line) => line.split(" "));

describe("odd paths and hosts at a real Envoy", { skip: needsEnvoy }, () => {
  let coordinator: CoordinatorUnderTest;
  let core: CoreUnderTest;
  let envoy: EnvoyUnderTest;
  const upstreams: Upstream[] = [];

  const serve = async (service: string): Promise<void> => {
    const upstream = await Upstream.start(({ url }, response) => response.end(`${service} ${url}`));
    upstreams.push(upstream);
    await registerServer(coordinator, service, { id: `${service}-1`, address: upstream.address });
  };
  /** This Envoy runs without the module: what it hands over is what the module would read. */
  const compare = async (path: string, host: string): Promise<void> => {
    const request = { method: "GET", url: `http://${host}${path}`, headers: [["host", host]] };
    const { body } = await core.call("POST", "/v1/explain", request);
    const reply = await envoy.get(path, { host });
    const got = reply.status === 200 ? reply.body : String(reply.status);
    const says =
      body["outcome"] === "forward" ? `${String(body["service"])} ${String(body["path"])}` : "400";
    assert.equal(says, got, `${host} ${path}`);
  };

  before(async () => {
    coordinator = await CoordinatorUnderTest.start();
    const yaml = (service: string, names: string): string =>
      `service: ${service}\nhosts: [${names}]\nkey: none\nownership: { guard: sdk, lease: 30s }\n`;
    const files = { "a.yaml": yaml("a", 'a.test, "*.w.test"'), "rest.yaml": yaml("rest", '"*"') };
    core = await CoreUnderTest.start({ coordinatorPort: coordinator.port, files });
    await until("the services are defined", () => core.plane.link.book.services.size === 2);
    await serve("a");
    await serve("rest");
    envoy = await EnvoyUnderTest.start({ xdsPort: core.plane.xdsPort });
    await until("the edge serves", async () => {
      const replies = await Promise.all(["a.test", "x"].map((host) => envoy.get("/", { host })));
      return replies.every(({ status }) => status === 200);
    });
  });

  after(async () => {
    await envoy?.stop();
    await core?.stop();
    await coordinator?.stop();
    for (const upstream of upstreams) upstream.stop();
  });

  test("explain reads a path as the edge does", async () => {
    await Promise.all(paths.map((path) => compare(path, "a.test")));
    const path = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((it) => it.join(""));
    await fc.assert(
      fc.asyncProperty(path, (it) => compare(`/${it}`, "a.test")),
      { numRuns: 500 },
    );
  });

  test("explain finds the service of a host as the edge does", async () => {
    await Promise.all([...hosts, ...moreHosts, ...dots].map((host) => compare("/x", host)));
  });
});
