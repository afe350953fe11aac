import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { after, before, test } from "node:test";
import { BelayUnderTest, fire, OpenLoop, pause, until } from "@belay/testkit";
import { WebSocket } from "ws";
import { envelopeOf, varint } from "./envelope.ts";
import { addServer, parseAnswer, placeKeys, worldYaml } from "./world.ts";

// What a hostile or broken client sends: the documented answer, bounded memory, no harm to others.
const mebibyte = 1_048_576;
let belay: BelayUnderTest;
let bystanders: OpenLoop;
let rssAtStart = 0;

/** Resident memory of the edge's Envoy, bytes. */
function residentBytes(): number {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const command = readCommand(pid);
    if (!command[0]?.endsWith("envoy") || !command.some((it) => it.includes(belay.data))) continue;
    const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return Number(kib) * 1024;
  }
  throw new Error("the edge has no Envoy");
}

function readCommand(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return []; // it has ended
  }
}

const protobuf = { "content-type": "application/x-protobuf" };
const post = (body: Uint8Array) => ({ path: "/rpc", method: "POST", headers: protobuf, body });

before(async () => {
  belay = await BelayUnderTest.start({
    world: `${worldYaml.replace("lease: 3s", "lease: 15s")}body: { replay: 256KiB }\n`,
  });
  await addServer(belay, "a");
  const good = ["good-1", "good-2", "good-3"];
  await placeKeys(belay, good);
  bystanders = new OpenLoop({
    port: belay.ports.edge,
    ratePerSecond: 50,
    next: (index) => ({ path: `/s/${good[index % 3]}/` }),
    isGood: ({ status }) => status === 200,
  });
  await until("bystanders are served", () => bystanders.good > 50);
  rssAtStart = residentBytes();
});

after(async () => {
  await bystanders.stop();
  await belay.stop();
});

test("P4: x-belay-* and x-envoy-* headers of clients reach nobody and switch nothing", async () => {
  const spoofed = {
    "x-belay-key": "somebody-else",
    "x-belay-epoch": "999999",
    "x-belay-incarnation": "1",
    "x-belay-attempt": "7",
    "x-belay-refused": "1; as-of=1; reason=moved",
    "x-envoy-retry-on": "5xx",
    "x-envoy-max-retries": "100",
    "x-envoy-retriable-status-codes": "200",
    "x-envoy-retriable-header-names": "server",
    "x-envoy-hedge-on-per-try-timeout": "true",
    "x-envoy-upstream-rq-timeout-ms": "1",
    "x-envoy-upstream-rq-per-try-timeout-ms": "1",
    "x-envoy-upstream-alt-stat-name": "evil",
    "x-envoy-decorator-operation": "evil",
    "x-envoy-original-path": "/evil",
    "x-envoy-attempt-count": "99",
    "x-envoy-ip-tags": "evil",
    x_belay_key: "somebody-else", // what CGI and its kin take for x-belay-key
    x_belay_epoch: "999999",
    "x-envoy_internal": "true",
  };
  for (const [name, value] of [...Object.entries(spoofed), ["all", ""] as const]) {
    const headers = name === "all" ? spoofed : { [name]: value };
    const reply = await belay.get({ path: "/s/good-1/", headers });
    assert.equal(reply.status, 200, `${name}: ${reply.body}`);
    const answer = parseAnswer(reply);
    assert.equal(answer.key, "good-1");
    const clean = parseAnswer(await belay.get({ path: "/s/good-1/" }));
    for (const header of Object.keys(spoofed)) {
      assert.equal(answer.headers[header], clean.headers[header], `${name} changed ${header}`);
    }
  }
  const plain = await belay.get({ path: "/", headers: { "x-belay-key": "good-1" } });
  assert.equal(plain.headers["x-belay-reason"], "no-key", "x-belay-key of a client is no key");
});

test("C1: broken protobuf gets 400 with its reason", async () => {
  const whole = envelopeOf("good-1");
  const nested = (levels: number): Buffer => {
    let message = Buffer.from([0x08, 1]);
    for (let level = 0; level < levels; level += 1) {
      message = Buffer.concat([Buffer.from([0x0a]), varint(message.length), message]);
    }
    return message;
  };
  const cases: [string, Uint8Array, string[]][] = [
    ["truncated", whole.subarray(0, 11), ["bad-envelope"]],
    ["endless varint", Buffer.alloc(64, 0xff), ["bad-envelope"]],
    ["10,000 nested levels", nested(10_000), ["no-key", "bad-envelope"]],
    ["a huge length", Buffer.concat([Buffer.from([0x62]), varint(2 ** 31)]), ["bad-envelope"]],
    ["field number 0", Buffer.from([0x02, 0x01, 0x00]), ["bad-envelope"]],
    ["no envelope", Buffer.from([0x08, 0x01]), ["no-key"]],
    ["empty", Buffer.alloc(0), ["no-key"]],
    [
      "random",
      Buffer.from(Array.from({ length: 4_000 }, (_, index) => (index * 37) % 251)),
      ["no-key", "bad-envelope"],
    ],
  ];
  for (const [name, body, reasons] of cases) {
    const reply = await belay.get(post(body));
    assert.equal(reply.status, 400, `${name}: ${reply.status}`);
    assert.ok(reasons.includes(String(reply.headers["x-belay-reason"])), `${name}: ${reply.body}`);
  }
});

test("C1: an envelope in every field: the first in the named field counts", async () => {
  const inField = (field: number): Buffer => {
    const message = envelopeOf(`in-${field}`, 0);
    return Buffer.concat([varint((field << 3) | 2), message.subarray(1)]);
  };
  const body = Buffer.concat(Array.from({ length: 30 }, (_, index) => inField(index + 1)));
  const reply = await belay.get(post(body));
  assert.equal(reply.status, 200, reply.body);
  assert.equal(parseAnswer(reply).key, "in-12");
});

test("C6: bodies of 5 MB stream on behind the envelope; without one they are 400", async () => {
  const good = await belay.get(post(envelopeOf("good-2", 5_000_000)));
  assert.equal(good.status, 200, good.body);
  assert.ok(parseAnswer(good).length > 5_000_000);
  const bad = await fire(belay.ports.edge, post(Buffer.alloc(5_000_000, 0x08))).catch(String);
  if (typeof bad !== "string") assert.equal(bad.status, 400);
});

test("slow and broken clients hold nothing up", async () => {
  const sockets = Array.from({ length: 100 }, (_, index) => {
    const socket = connectTcp(belay.ports.edge, "127.0.0.1");
    socket.on("error", () => {});
    if (index % 4 === 0)
      socket.write("POST /rpc HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nab");
    else if (index % 4 === 1) socket.write("GET /s/good-1/ HT");
    else if (index % 4 === 2) socket.write("\u0000\u0001\u0002 nonsense\r\n\r\n");
    else
      socket.write(
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff",
      );
    return socket;
  });
  const goodBefore = bystanders.good;
  await until("bystanders are served", () => bystanders.good > goodBefore + 100);
  for (const socket of sockets) socket.destroy();
});

test("broken WebSocket frames end their own socket only", async () => {
  const bystander = new WebSocket(`ws://127.0.0.1:${belay.ports.edge}/s/good-3/`);
  await new Promise<void>((resolve, reject) => {
    bystander.on("open", resolve);
    bystander.on("error", reject);
  });
  for (let round = 0; round < 20; round += 1) {
    const socket = connectTcp(belay.ports.edge, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(
      "GET /s/good-3/ HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n" +
        "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    await new Promise((resolve) => socket.once("data", resolve));
    socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, round]));
    await new Promise((resolve) => socket.once("close", resolve));
  }
  assert.equal(bystander.readyState, bystander.OPEN);
  bystander.close();
});

test("100,000 invented keys in a minute: memory grows by the entries of placed keys only", async () => {
  const invented = new OpenLoop({
    port: belay.ports.edge,
    ratePerSecond: 1_800,
    next: (index) =>
      index % 2 === 0 ? { path: `/s/invented-${index}/` } : { path: `/s/%0${index % 10}${index}/` }, // no key at all
    isGood: ({ status }) => [200, 400, 503].includes(status),
  });
  const end = performance.now() + 60_000;
  await until("100,000 were sent", () => invented.sent >= 100_000, 90_000);
  await pause(Math.max(0, end - performance.now()));
  await invented.stop();
  assert.deepEqual(invented.bad.slice(0, 5), []);
  const entries = await belay.metric("envoy_belay_map_entries");
  const grown = residentBytes() - rssAtStart - entries * (64 + 24);
  assert.ok(
    grown <= 64 * mebibyte,
    `grew by ${Math.round(grown / mebibyte)} MiB beyond ${entries} entries`,
  );
});

test("through all of it others were served, and nothing panicked", async () => {
  await bystanders.stop();
  assert.deepEqual(bystanders.bad.slice(0, 5), []);
  assert.equal(await belay.metric("envoy_belay_panics"), 0);
  assert.ok(belay.edges.every(({ child }) => child.running));
});
