import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { errorTable, isErrorCode } from "@belay/model";
import { freePorts, until } from "@belay/testkit";
import { createAllRoutes, startAdminApi } from "../../packages/belay/src/admin/admin-api.ts";
import { errorSchema } from "../../packages/belay/src/admin/schemas.ts";
import { CoordinatorUnderTest } from "../coordinator/coordinator-under-test.ts";
import { CoreUnderTest } from "./core-under-test.ts";

const world =
  "service: world\nteam: overworld\nkey:\n  - path: /s/{key}/**\n  - header: x-player-id\n";

/** Status and error code of a call with headers that fetch does not let through. */
async function rawStatus(core: CoreUnderTest, headers: Record<string, string>): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const call = request(`${core.url}/v1/services`, { headers }, (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (part: string) => (text += part));
    response.on("end", () => {
      const body: unknown = JSON.parse(text);
      const code = errorSchema.safeParse(body);
      resolve(`${response.statusCode}${code.success ? ` ${code.data.code}` : ""}`);
    });
  });
  call.on("error", reject).end();
  return promise;
}

describe("the admin API with a coordinator", () => {
  let coordinator: CoordinatorUnderTest;
  let core: CoreUnderTest;

  before(async () => {
    coordinator = await CoordinatorUnderTest.start();
    core = await CoreUnderTest.start({ coordinatorPort: coordinator.port });
    await until("the feed is followed", () => core.plane.link.status().feed === "live");
  });

  after(async () => {
    await core?.stop();
    await coordinator?.stop();
  });

  test("apply writes the file, a second time changes nothing, and all views show the service", async () => {
    const first = await core.call("PUT", "/v1/services/world", { yaml: world });
    assert.equal(first.status, 200, JSON.stringify(first.body));
    assert.equal(first.body["changed"], true);
    const file = join(core.data, "services", "world.yaml");
    assert.equal(readFileSync(file, "utf8"), world);
    const again = await core.call("PUT", "/v1/services/world", { yaml: world });
    assert.equal(again.body["changed"], false);
    const { body } = await core.call("GET", "/v1/services/world");
    assert.deepEqual(
      [body["state"], body["file"], body["line"], body["team"]],
      ["serving", file, 1, "overworld"],
    );
    assert.deepEqual(body["keys"], ["path /s/{key} (stripped)", "header x-player-id"]);
    await until("the coordinator knows it", () => core.plane.link.book.services.has("world"));
    const owner = await core.call("GET", "/v1/owner?service=world&key=ann");
    assert.deepEqual([owner.status, owner.body["state"]], [200, "free"]);
    const status = await core.call("GET", "/v1/status");
    assert.match(JSON.stringify(status.body), /"endpoints":"live","services":1/);
    assert.match(JSON.stringify(status.body), /"store":"sqlite"/);
  });

  test("what is wrong is refused with all problems, and nothing is written", async () => {
    const yaml = "service: chat\nkey: { hedder: x }\nhosts: [a.example:1]\n";
    const { status, body } = await core.call("PUT", "/v1/services/chat", {
      yaml,
      file: "my/chat.yaml",
    });
    assert.deepEqual([status, body["code"]], [422, "invalid-service-file"]);
    const problems = JSON.stringify(body["problems"]);
    assert.match(problems, /"file":"my\/chat.yaml","line":2.*did you mean `header`.*"line":3/);
    assert.ok(!existsSync(join(core.data, "services", "chat.yaml")));
    const taken = await core.call("PUT", "/v1/services/chat", {
      yaml: "service: chat\nkey: none\n",
    });
    assert.match(JSON.stringify(taken.body), /takes every host.*so does world/);
    const other = await core.call("PUT", "/v1/services/chat", { yaml: world });
    assert.equal(other.body["code"], "name-mismatch");
  });

  test("check judges files beside each other and changes nothing", async () => {
    const files = [
      { file: "a.yaml", yaml: "service: a\nkey: none\nhosts: [x.test]\n" },
      { file: "b.yaml", yaml: "service: b\nkey: none\nhosts: [x.test]\n" },
    ];
    const { status, body } = await core.call("POST", "/v1/services:check", { files });
    assert.equal(status, 200);
    assert.equal(body["ok"], false);
    assert.match(JSON.stringify(body["problems"]), /"file":"b.yaml".*belongs to a \(a.yaml:3\)/);
    const alone = await core.call("POST", "/v1/services:check", { files: files.slice(0, 1) });
    assert.deepEqual(alone.body, { ok: true, services: ["a"], problems: [] });
  });

  test("explain says what an edge does, and who owns the key", async () => {
    await core.call("PUT", "/v1/services/world", { yaml: world });
    await until("the coordinator knows it", () => core.plane.link.book.services.has("world"));
    const { body } = await core.call("POST", "/v1/explain", {
      method: "GET",
      url: "http://127.0.0.1:8080/s/ann/x",
    });
    assert.deepEqual(
      [body["outcome"], body["service"], body["key"], body["upstreamPath"]],
      ["forward", "world", "ann", "/x"],
    );
    assert.match(JSON.stringify(body["steps"]), /nobody yet; the first request places/);
    const refused = await core.call("POST", "/v1/explain", { method: "GET", url: "/x" });
    assert.deepEqual([refused.body["reason"], refused.body["status"]], ["no-key", 400]);
  });

  test("what the coordinator refuses comes with its code", async () => {
    const cases: readonly (readonly [string, string, unknown, string])[] = [
      ["POST", "/v1/moves", { service: "world", key: "nobody" }, "key-unowned"],
      ["POST", "/v1/moves", { service: "none", key: "k" }, "service-unknown"],
      ["POST", "/v1/drains", { server: "none" }, "server-unknown"],
      ["GET", "/v1/owner?service=none&key=k", undefined, "service-unknown"],
    ];
    for (const [method, path, body, code] of cases) {
      const reply = await core.call(method, path, body);
      assert.equal(reply.body["code"], code, path);
      assert.ok(isErrorCode(code));
      assert.equal(reply.status, code === "service-unknown" ? 404 : errorTable[code].http);
      assert.ok(errorSchema.safeParse(reply.body).success);
    }
  });

  test("shards are paged, empty services have none", async () => {
    const { status, body } = await core.call("GET", "/v1/shards?service=world&limit=2");
    assert.deepEqual([status, body], [200, { shards: [] }]);
  });

  test("calls that are no calls get words and a hint", async () => {
    const json = { "content-type": "application/json" };
    const cases: readonly (readonly [string, RequestInit, number, string])[] = [
      ["/v1/nothing", {}, 404, "route-unknown"],
      ["/v1/services/none", {}, 404, "service-unknown"],
      ["/v1/services/UPPER", {}, 400, "bad-request"],
      ["/v1/owner/x/%zz", {}, 400, "bad-request"],
      ["/v1/services/%zz", { method: "DELETE" }, 400, "bad-request"],
      [`/v1/services/${"x".repeat(200)}`, {}, 400, "bad-request"],
      ["/v1/shards?service=world&limit=0", {}, 400, "bad-request"],
      ["/v1/shards?service=world&x=1", {}, 400, "bad-request"],
      ["/v1/moves", { method: "POST", body: "a=b" }, 415, "body-not-json"],
      ["/v1/moves", { method: "POST", body: "{", headers: json }, 415, "body-not-json"],
      ["/v1/moves", { method: "POST", body: "", headers: json }, 415, "body-not-json"],
      ["/v1/moves", { method: "POST", body: "{}", headers: json }, 400, "bad-request"],
      [
        "/v1/moves",
        { method: "POST", body: `"${"x".repeat(1_100_000)}"`, headers: json },
        413,
        "body-too-large",
      ],
    ];
    for (const [path, init, status, code] of cases) {
      const reply = await core.fetch(path, init);
      assert.equal(reply.body["code"], code, `${path} ${JSON.stringify(reply.body)}`);
      assert.equal(reply.status, status, path);
      assert.notEqual(reply.body["hint"], "");
    }
  });

  test("what is no key is told as an edge tells it", async () => {
    const long = "é".repeat(129);
    const bad = ["a%01b", "%7F", "%C2%85", "", encodeURIComponent(long)];
    const queries = bad.map((it) => `/v1/owner?service=world&key=${it}`);
    for (const path of [...queries, "/v1/shards?service=world&after=a%00"]) {
      const { status, body } = await core.call("GET", path);
      assert.deepEqual([status, body["code"]], [400, "bad-key"], path);
    }
    for (const key of ["a\nb", "", long, "\uD800"]) {
      const { status, body } = await core.call("POST", "/v1/moves", { service: "world", key });
      assert.deepEqual([status, body["code"]], [400, "bad-key"], key);
    }
  });

  test("what is no HTTP is answered like all else", async () => {
    const calls = [
      ["GET / nonsense\r\n\r\n", "400"],
      [`GET /${"x".repeat(20_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`, "431"],
    ] as const;
    for (const [bytes, status] of calls) {
      const socket = connect(core.api?.port ?? 0, "127.0.0.1");
      socket.write(bytes);
      const answer = await readText(socket);
      assert.equal(answer.split(" ")[1], status);
      const body: unknown = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")));
      assert.equal(errorSchema.parse(body).code, "bad-request");
    }
  });

  test("no web page gets in: foreign names and origins are refused", async () => {
    const port = core.api?.port ?? 0;
    assert.equal(await rawStatus(core, { host: `127.0.0.1:${port}` }), "200");
    assert.equal(await rawStatus(core, { host: `localhost:${port}` }), "200");
    assert.equal(await rawStatus(core, { host: "evil.example" }), "403 foreign-host");
    assert.equal(await rawStatus(core, { host: "127.0.0.1.evil.example" }), "403 foreign-host");
    const host = `127.0.0.1:${port}`;
    for (const origin of ["http://evil.example", "null", `http://127.0.0.1:${port + 1}`]) {
      assert.equal(await rawStatus(core, { host, origin }), "403 foreign-origin", origin);
    }
    assert.equal(await rawStatus(core, { host, origin: `http://${host}` }), "200");
    assert.equal(
      await rawStatus(core, { host, "sec-fetch-site": "cross-site" }),
      "403 foreign-origin",
    );
  });

  test("OpenAPI and the reference page list every route", async () => {
    const { body } = await core.call("GET", "/openapi.json");
    assert.equal(body["openapi"], "3.1.0");
    const paths = new Map(Object.entries(Object(body["paths"])));
    const page = readFileSync(
      join(import.meta.dirname, "../../docs/reference/admin-api.md"),
      "utf8",
    );
    const routes = createAllRoutes({ controlPlane: core.plane, version: "0.1.0" });
    for (const { method, path } of routes) {
      const operation: unknown = Reflect.get(Object(paths.get(path)), method.toLowerCase());
      assert.ok(operation !== undefined, `${method} ${path} is not in openapi.json`);
      assert.ok(page.includes(`\`${method} ${path}\``), `${method} ${path} is not in admin-api.md`);
    }
    assert.equal(paths.size, new Set(routes.map(({ path }) => path)).size);
    assert.ok(!JSON.stringify(body).includes("$schema"));
  });

  test("the coordinator away: what needs it says so, the rest goes on", async () => {
    await coordinator.kill();
    await until("the loss is seen", () => !core.plane.link.status().connected);
    const owner = await core.call("GET", "/v1/owner?service=world&key=ann");
    assert.deepEqual([owner.status, owner.body["code"]], [503, "coordinator-unreachable"]);
    const proxies = await core.call("GET", "/v1/proxies");
    assert.equal(proxies.status, 200);
    assert.notEqual(proxies.body["coordinatorProblem"], "");
    const explained = await core.call("POST", "/v1/explain", { method: "GET", url: "/s/ann" });
    assert.match(JSON.stringify(explained.body["steps"]), /owner: not known now/);
    const status = await core.call("GET", "/v1/status");
    assert.match(JSON.stringify(status.body), /"endpoints":"last-known"/);
  });
});

test("with a token every route but /healthz wants it", async (t) => {
  const [coordinatorPort = 1] = await freePorts(1);
  const core = await CoreUnderTest.start({ coordinatorPort, token: "correct-horse-battery" });
  t.after(() => core.stop());
  assert.equal((await core.call("GET", "/healthz")).status, 200);
  for (const path of ["/v1/services", "/metrics", "/openapi.json", "/v1/%zz"]) {
    const none = await core.call("GET", path);
    assert.deepEqual([none.status, none.body["code"]], [401, "unauthorized"], path);
    const wrong = await core.fetch(path, { headers: { authorization: "Bearer wrong" } });
    assert.equal(wrong.status, 401);
    if (path.includes("%zz")) continue;
    const right = await core.fetch(path, {
      headers: { authorization: "Bearer correct-horse-battery" },
    });
    assert.equal(right.status, 200);
  }
});

test("beyond loopback the API does not start without a token", async (t) => {
  const [coordinatorPort = 1] = await freePorts(1);
  const core = await CoreUnderTest.start({ coordinatorPort });
  t.after(() => core.stop());
  const quiet = (): void => undefined;
  const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const options = { controlPlane: core.plane, version: "0.1.0", logger };
  await assert.rejects(startAdminApi({ ...options, host: "0.0.0.0", port: 0 }), {
    code: "token-needed",
  });
  const port = core.api?.port ?? 0;
  await assert.rejects(startAdminApi({ ...options, host: "127.0.0.1", port }), {
    code: "port-in-use",
  });
});

test("a folder of the user's is not written, and the API says why", async (t) => {
  const [coordinatorPort = 1] = await freePorts(1);
  const core = await CoreUnderTest.start({
    coordinatorPort,
    ownFolder: true,
    files: { "world.yaml": world },
  });
  t.after(() => core.stop());
  for (const [method, body] of [
    ["PUT", { yaml: world }],
    ["DELETE", undefined],
  ] as const) {
    const reply = await core.call(method, "/v1/services/world", body);
    assert.deepEqual([reply.status, reply.body["code"]], [409, "services-folder-yours"]);
    assert.ok(String(reply.body["message"]).includes(core.services));
  }
});

test("the last service goes when it is ordered to", async (t) => {
  const [coordinatorPort = 1] = await freePorts(1);
  const core = await CoreUnderTest.start({ coordinatorPort, files: { "w.yaml": world } });
  t.after(() => core.stop());
  const renewed = await core.call("PUT", "/v1/services/world", { yaml: `${world}# more\n` });
  assert.equal(
    renewed.body["file"],
    join(core.services, "w.yaml"),
    "the file that has it is written",
  );
  assert.deepEqual((await core.call("DELETE", "/v1/services/world")).body, { removed: "world" });
  assert.deepEqual(core.plane.served(), []);
  assert.equal(core.plane.status().alarm, "");
  await core.restart();
  assert.deepEqual(core.plane.served(), []);
});
