import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { encodeKey, isKey } from "../key/key.ts";
import { checkServiceFiles } from "../service-file/link.ts";
import { explain, type ExplainInput, type Explanation } from "./explain.ts";

const { services, problems } = checkServiceFiles([
  {
    file: "world.yaml",
    text: `service: world
hosts: [play.example.com, "*.play.example.com"]
key:
  - path: /s/{key}/**
  - path: /d/{key...}
    strip: false
  - header: x-player-id
  - cookie: sid
  - query: room
  - host: "{key}.play.example.com"
routes:
  - match: { path: /healthz }
    respond: { status: 200, body: ok }
  - match: { prefix: /server }
    key: { path: "/server/{server}" }
  - match: { prefix: /rpc }
    key: { envelope: { use: player } }
`,
  },
  { file: "any.yaml", text: "service: any\nkey: { minted: { cookie: session } }\n" },
]);
assert.deepEqual(problems, []);

function ask(url: string, headers: ExplainInput["headers"] = []): Explanation {
  return explain(services, { method: "GET", url, headers });
}

const world = "http://play.example.com";

test("every place of the vectors gives the key", () => {
  const places: readonly (readonly [string, ExplainInput["headers"]?])[] = [
    [`${world}/s/ann/x?y=1`],
    [`${world}/x`, [["X-Player-Id", " ann "]]],
    [`${world}/x`, [["cookie", "a=b; sid=ann"]]],
    [`${world}/x?a=1&room=ann`],
    [`${world}/x?r%6Fom=ann`],
    ["http://ANN.play.example.com:8080/x"],
    ["/x", [["host", "ann.play.example.com"]]],
  ];
  for (const [url, headers] of places) {
    const found = ask(url, headers);
    assert.equal(found.outcome, "forward", url);
    assert.equal(found.key, "ann", url);
    assert.equal(found.service, "world");
  }
});

test("the path is stripped up to the key, and only where the file says so", () => {
  assert.equal(ask(`${world}/s/ann/x?y=1`).upstreamPath, "/x?y=1");
  assert.equal(ask(`${world}/s/ann`).upstreamPath, "/");
  assert.equal(ask(`${world}/s/ann?y=1`).upstreamPath, "/?y=1");
  const document = ask(`${world}/d/a/b%20c?y=1`);
  assert.equal(document.key, "a/b c");
  assert.equal(document.upstreamPath, "/d/a/b%20c?y=1");
});

test("the key is found in the path that the edge reads, and the steps tell it", () => {
  for (const path of ["/s/bob/../ann", "/s/bob/%2e%2E/ann", String.raw`/s\ann`, "/s/%61nn"]) {
    const found = ask(`${world}${path}`);
    assert.deepEqual([found.key, found.path], ["ann", "/s/ann"], path);
    assert.ok(found.steps.includes(`path ${path}: normalised to /s/ann`), path);
  }
  const unread = ask(`${world}/s/a%00`);
  assert.deepEqual([unread.outcome, unread.status, unread.reason], ["refuse", 400, undefined]);
});

test("one dot at the end of the host is dropped, as Envoy drops it", () => {
  for (const host of ["play.example.com.", "PLAY.example.com.:80", "play.example.com.:"]) {
    const found = ask(`http://${host}/s/ann`);
    assert.deepEqual([found.service, found.host, found.key], ["world", "play.example.com", "ann"]);
  }
  assert.equal(ask("http://ann.play.example.com./x").key, "ann");
  assert.equal(ask("http://play.example.com..:80/s/ann").service, "any");
  assert.equal(ask("http://./").host, "");
});

test("refusals carry the reason, the status and the place", () => {
  const two = ask(`${world}/s/ann`, [["x-player-id", "bob"]]);
  assert.deepEqual([two.reason, two.status, two.from], ["key-conflict", 400, "header x-player-id"]);
  assert.equal(ask(`${world}/s/%zz`).reason, "bad-key");
  assert.equal(ask(`${world}/x`, [["x-player-id", "a".repeat(257)]]).reason, "bad-key");
  assert.equal(ask(`${world}/x`).reason, "no-key");
  assert.equal(ask(`${world}/server/a%20b`).reason, "server-unknown");
});

test("equal values may be repeated, empty ones are absent", () => {
  const headers = [
    ["x-player-id", "ann"],
    ["x-player-id", "ann"],
    ["cookie", "sid="],
  ] as const;
  assert.equal(ask(`${world}/s/ann?room=`, headers).key, "ann");
});

test("routes are tried in order, a prefix ends at a segment", () => {
  const health = ask(`${world}/healthz`);
  assert.deepEqual([health.outcome, health.status], ["respond", 200]);
  assert.deepEqual([health.route?.file, health.route?.line], ["world.yaml", 12]);
  assert.equal(ask(`${world}/rpc/Move`).outcome, "need-body");
  assert.equal(ask(`${world}/rpcs`).reason, "no-key");
  assert.equal(ask(`${world}/server/world-a/x`).server, "world-a");
  assert.equal(ask(`${world}/server`).outcome, "forward");
});

test("hosts: exact before wildcard before any", () => {
  assert.equal(ask("http://other.example/").service, "any");
  assert.equal(ask("/").service, "any");
  assert.equal(
    explain(services.slice(0, 1), { method: "GET", url: "/", headers: [] }).outcome,
    "no-service",
  );
});

test("a minted service balances what has no key yet", () => {
  const first = ask("http://other.example/");
  assert.equal(first.outcome, "forward");
  assert.equal(first.key, undefined);
  assert.match(first.steps.at(-1) ?? "", /mints/);
  assert.equal(ask("http://other.example/", [["cookie", "session=1"]]).key, "1");
});

test("a key survives path, query and header alike", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 30 }), (key) => {
      // No path carries the keys "." and "..".
      fc.pre(isKey(key) && key.trim() === key && !/^\.\.?$/.test(key));
      assert.equal(ask(`${world}/s/${encodeKey(key)}/`).key, key);
      assert.equal(ask(`${world}/?room=${encodeKey(key)}`).key, key);
      assert.equal(ask(`${world}/`, [["x-player-id", key]]).key, key);
    }),
  );
});

test("explain never throws", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 60 }),
      fc.array(fc.tuple(fc.string(), fc.string({ unit: "binary" })), { maxLength: 4 }),
      (url, headers) => {
        const found = explain(services, { method: "GET", url, headers });
        assert.ok(found.steps.length > 0);
      },
    ),
    { numRuns: 500 },
  );
});
