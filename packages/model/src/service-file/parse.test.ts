import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { parseServiceFile } from "./parse.ts";
import type { Service } from "./service.ts";

function good(text: string): Service {
  const result = parseServiceFile(text, "world.yaml");
  assert.ok(result.ok, result.ok ? "" : JSON.stringify(result.problems, null, 2));
  return result.service;
}

/** `line:column path: what` of every problem. */
function bad(text: string): string[] {
  const result = parseServiceFile(text, "world.yaml");
  assert.equal(result.ok, false, "expected problems");
  if (result.ok) return [];
  for (const problem of result.problems) assert.notEqual(problem.fix, "", problem.what);
  return result.problems.map(
    ({ line, column, path, what }) => `${line}:${column} ${path}: ${what}`,
  );
}

const key = "key: { header: x-player-id }\n";

test("the smallest file gets every default", () => {
  const service = good(`service: world\n${key}`);
  assert.deepEqual(service.hosts, ["*"]);
  assert.deepEqual(service.key, {
    places: [{ from: "header", name: "x-player-id" }],
    noKey: "refuse",
  });
  assert.deepEqual(service.ownership, {
    guard: "none",
    placement: "least-loaded",
    idleMs: 1_800_000,
    leaseMs: 15_000,
    believeMs: 15_000,
    drainMs: 10_000,
    parkMs: 12_000,
    movesPerSecond: 50,
    unknownKeyStatus: 404,
  });
  assert.equal(service.routes.length, 1);
  assert.deepEqual(service.routes[0]?.match, { kind: "prefix", value: "/" });
  assert.equal(service.replayBytes, 1_048_576);
  assert.deepEqual(service.source.positions["key.header"], { line: 2, column: 8 });
  assert.deepEqual(JSON.parse(JSON.stringify(service)), service);
});

test("the hard file is read whole", () => {
  const service = good(`service: world
team: overworld
hosts: [Play.example.com, "*.play.example.com"]
servers: { registered: true, protocol: h2 }
key:
  - path: /s/{key}/**
  - envelope: { field: 12, marker: belay1, use: [app, player], numbers: { app: 9 } }
  - header: X-Player-Id
  - host: "{key}.play.example.com"
ownership: { sharding: key, guard: sdk, lease: 150s, believe: 15s, drain: 20s, unknown-key: 410 }
routes:
  - match: { path: /healthz }
    respond: { status: 200, body: ok }
  - match: { prefix: /rpc/ }
    timeout: 0
    key: none
    websocket: { enabled: false }
body: { replay: 64KiB, scan: 4KiB }
websocket: { idle: 2h, close-code: 1012 }
`);
  assert.deepEqual(service.hosts, ["play.example.com", "*.play.example.com"]);
  assert.deepEqual(
    service.key.places.map(({ from }) => from),
    ["path", "envelope", "header", "host"],
  );
  assert.deepEqual(service.key.places[0], { from: "path", template: "/s/{key}", strip: true });
  assert.equal(service.ownership.parkMs, 22_000, "park follows drain (M5)");
  const [health, rpc, rest] = service.routes;
  assert.deepEqual(health?.respond?.body, "ok");
  assert.deepEqual(rpc?.match, { kind: "prefix", value: "/rpc" });
  assert.deepEqual(rpc?.key, { places: [], noKey: "balance" });
  assert.equal(rpc?.timeoutMs, 0);
  assert.equal(rpc?.websocket, false);
  assert.equal(rest?.path, "", "the last route is implicit");
  assert.equal(rest?.websocketIdleMs, 7_200_000);
  assert.equal(service.envelopeBytes, 4096);
  assert.equal(service.closeCode, 1012);
});

test("a minted header comes back under its own name", () => {
  const rule = good("service: mcp\nkey: { minted: { header: Mcp-Session-Id } }\n").key;
  assert.deepEqual(rule.minted, { from: "header", name: "mcp-session-id" });
  assert.deepEqual(rule.places, [{ from: "header", name: "mcp-session-id" }]);
  assert.equal(rule.noKey, "balance");
});

test("a path with {server} is balanced without an id", () => {
  const rule = good("service: w\nkey:\n  path: /s/{server}/**\n").key;
  assert.equal(rule.noKey, "balance");
});

test("all problems come at once, in reading order, with their places", () => {
  const problems = bad(`service: World
tem: x
key: { header: host, strp: false }
ownership: { lease: 15, drain: 20s, park: 5s, placment: pack, guard: skd }
routes:
  - match: { prefix: /rpc, path: /x }
  - match: { path: /y }
    timeout: 2 hours
    respond: { body: ok }
body: 5
`);
  assert.deepEqual(problems, [
    '1:1 service: "World" is not 1-63 of a-z, 0-9 and inner -',
    '2:1 tem: unknown member "tem"',
    "3:8 key.header: the header host cannot carry a key",
    '3:22 key.strp: unknown member "strp"',
    "4:14 ownership.lease: 15 has no unit",
    '4:47 ownership.placment: unknown member "placment"',
    '4:63 ownership.guard: "skd" is not one of none, sdk',
    "6:5 routes[0].match: names both path and prefix",
    '8:5 routes[1].timeout: "2 hours" is no duration',
    "9:5 routes[1].respond.status: is missing",
    "10:1 body: expected a mapping, found a number",
  ]);
});

test("a slip gets the word that was meant", () => {
  const result = parseServiceFile("servise: a\nkey: none\nownership: { gaurd: sdk }\n", "a.yaml");
  assert.ok(!result.ok);
  const fixes = result.problems.map(({ fix }) => fix.split("?")[0]);
  assert.deepEqual(fixes, [
    "write `service: NAME`",
    "did you mean `service`",
    "did you mean `guard`",
  ]);
});

const contradictions: readonly (readonly [text: string, path: string, what: RegExp])[] = [
  ["ownership: { park: 5s }", "ownership.park", /no longer than the old owner may drain/],
  ["ownership: { believe: 20s }", "ownership.believe", /believe for 20s/],
  ["ownership: { lease: 999ms }", "ownership.lease", /out of range/],
  ["hosts: []", "hosts", /empty/],
  ["hosts: [a.example, A.example]", "hosts[1]", /twice/],
  ["hosts: ['a.example:80']", "hosts[0]", /port/],
  ["servers: { registered: false }", "servers.registered", /not known/],
  [
    "routes:\n  - match: { prefix: / }\n  - match: { path: /x }",
    "routes[1]",
    /no request gets here/,
  ],
  [
    "routes:\n  - match: { path: /x }\n    respond: { status: 200 }\n    timeout: 1s",
    "routes[0].timeout",
    /no effect/,
  ],
  [
    "routes:\n  - match: { path: /x }\n    respond: { status: 204, body: x }",
    "routes[0].respond.body",
    /no body/,
  ],
];

for (const [text, path, what] of contradictions) {
  test(`contradiction: ${text.replaceAll("\n", "⏎")}`, () => {
    const result = parseServiceFile(`service: w\n${key}${text}\n`, "w.yaml");
    assert.ok(!result.ok, "expected a problem");
    assert.deepEqual(
      result.problems.map((problem) => problem.path),
      [path],
    );
    assert.match(result.problems[0]?.what ?? "", what);
  });
}

const badKeys: readonly (readonly [text: string, what: RegExp])[] = [
  ["key: []\nkeys: x", /unknown member "keys"/],
  ["key:\n  - {}", /names no place/],
  ["key:\n  - { header: a, cookie: b }", /header and cookie/],
  ["key: { header: a, strip: true }", /no path to strip/],
  ["key: { path: /s }", /neither a segment \{key\}/],
  ["key: { path: 's/{key}' }", /must begin with/],
  ["key: { path: '/a-{key}' }", /whole segment/],
  ["key: { path: '/{key...}/x' }", /rest of the path/],
  ["key: { host: 'x-{key}.com' }", /whole label/],
  ["hosts: [a.example]\nkey: { host: '{key}.b.example' }", /no host of `hosts` fits/],
  ["key:\n  - { minted: { header: a } }\n  - { envelope: { use: player } }", /client's envelope/],
  ["key: { minted: { json: $.id } }", /no place says where clients send/],
  ["key: { minted: { body: '[a-z]+' } }", /has no group/],
  ["key: { minted: { body: '(?=x)(y)' } }", /looks around/],
  ["key: { minted: { json: id } }", /JSON path/],
  ["key:\n  - { path: '/s/{server}' }\n  - { header: a }", /cannot obey both/],
  ["key:\n  - { header: a }\n  - { header: A }", /stands there twice/],
  ["key: { envelope: { use: player, numbers: { app: 5 } } }", /same field number/],
  ["key: { envelope: { field: 0, use: player } }", /no field number/],
  [
    "key: { path: '/s/{key}' }\nroutes:\n  - match: { prefix: /rpc }",
    /every request would be refused/,
  ],
];

for (const [text, what] of badKeys) {
  test(`key refused: ${text.replaceAll("\n", "⏎")}`, () => {
    const problems = bad(`service: w\n${text}\n`);
    assert.equal(problems.length, 1, problems.join("\n"));
    assert.match(problems[0] ?? "", what);
  });
}

const yamlFaults: readonly (readonly [name: string, text: string, what: RegExp])[] = [
  ["nothing", "", /expected a mapping, found nothing/],
  ["a list", "[]", /found a list/],
  ["tabs", "service: w\nkey:\n\theader: x\n", /[Tt]abs/],
  ["two documents", "service: a\n---\nservice: b\n", /several documents/],
  ["a member twice", `service: a\nservice: b\n${key}`, /stands there twice/],
  ["a tag", "service: !foo a\nkey: none\n", /tag/],
  ["a template in a flow mapping", "service: a\nkey: { path: /s/{key} }\n", /without quotes/],
  [
    "an alias bomb",
    `a: &a [x,x,x]\n${["b", "c", "d", "e", "f", "g"].map((n, i) => `${n}: &${n} [${Array(9).fill(`*${"abcdef"[i]}`).join(",")}]`).join("\n")}\n`,
    /aliases/,
  ],
  ["deep nesting", "[".repeat(200_000), /more than 20 levels/],
  ["deep nesting of blocks", "- ".repeat(100_000), /more than 20 levels/],
  ["deep nesting of mappings", "{a: ".repeat(60_000), /more than 20 levels/],
  ["one member 60 000 times", "a: 1\n".repeat(50_000), /more than 1000 entries/],
  ["nothing but line ends", "\n".repeat(200_000), /more than 50000/],
  ["nothing but commas", `[${",".repeat(200_000)}]`, /more than 50000/],
  ["a list without end", "- a\n".repeat(60_000), /more than 1000 entries/],
  ["a huge file", `service: ${"x".repeat(262_144)}`, /larger than 256 KiB/],
];

for (const [name, text, what] of yamlFaults) {
  test(`YAML: ${name}`, () => {
    const problems = bad(text);
    assert.equal(problems.length, 1, problems.join("\n"));
    assert.match(problems[0] ?? "", what);
  });
}

test("YAML: twenty levels are read, one more is not", () => {
  const nested = (levels: number): string => `${"[".repeat(levels)}x${"]".repeat(levels)}`;
  assert.deepEqual(
    bad(nested(20)).filter((it) => it.includes("levels")),
    [],
  );
  assert.match(bad(nested(21)).join(), /more than 20 levels/);
});

test("YAML: what is too deep is told with its place", () => {
  const result = parseServiceFile(`service: w\nkey:\n  - ${"[".repeat(30)}`, "w.yaml");
  assert.ok(!result.ok);
  const [problem] = result.problems;
  assert.equal(problem?.line, 3);
  assert.ok((problem?.column ?? 0) > 15, String(problem?.column));
});

test("the name of a refused file is told if it can be read", () => {
  const result = parseServiceFile("service: world\nkey: 5\n", "w.yaml");
  assert.ok(!result.ok);
  assert.equal(result.name, "world");
});

const fragments =
  "service key path header routes match prefix ownership lease &a *a /s/{key} 15s none minted use " +
  "envelope player - : { } [ ] \" ' # | > 0 null ~ hosts * % @ !x << \t";
const words = fc.constantFrom(...fragments.split(" "), "\n", "\n  ");

test("the parser never throws, and its positions lie in the text", () => {
  const texts = fc.oneof(
    fc.array(words, { maxLength: 40 }).map((parts) => parts.join(" ")),
    fc.array(words, { maxLength: 40 }).map((parts) => parts.join("")),
    fc.string({ unit: "binary", maxLength: 80 }),
    fc.json().map((json) => `service: w\nkey: ${json}\nroutes: [${json}]\n`),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const result = parseServiceFile(text, "x.yaml");
      const lines = text.split("\n");
      const places = result.ok ? Object.values(result.service.source.positions) : result.problems;
      for (const { line, column } of places) {
        assert.ok(line >= 1 && line <= lines.length, `line ${line}`);
        assert.ok(column >= 1 && column <= (lines[line - 1]?.length ?? 0) + 1, `column ${column}`);
      }
      if (!result.ok) assert.ok(result.problems.length > 0);
    }),
    { numRuns: 500 },
  );
});
