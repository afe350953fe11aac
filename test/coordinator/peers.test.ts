import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import test from "node:test";
import { encodeFrame, type FrameBody, FrameDecoder, Role } from "@belay/protocol";
import { until } from "@belay/testkit";
import { CoordinatorUnderTest } from "./coordinator-under-test.ts";
import { ProxyUnderTest } from "./proxy-under-test.ts";

/** Bytes to the coordinator, frames from it. */
class RawPeer {
  readonly socket: Socket;
  readonly frames: FrameBody[] = [];

  constructor(port: number) {
    this.socket = connect({ port, host: "127.0.0.1" });
    const decoder = new FrameDecoder((body) => this.frames.push(body));
    this.socket.on("data", (chunk: Buffer) => decoder.push(chunk));
    this.socket.on("error", () => undefined);
  }

  async problem(): Promise<string> {
    if (!this.socket.closed) await once(this.socket, "close");
    const last = this.frames.at(-1);
    return last?.case === "problem" ? last.value.code : `no problem: ${last?.case}`;
  }
}

test("what is no protocol is told so and cut, others are unharmed", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({});
  t.after(async () => coordinator.stop());
  const cases: [string, Uint8Array][] = [
    ["bad-frame", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["bad-frame", Buffer.alloc(4)],
    ["bad-frame", Buffer.from([0, 0, 0, 2, 0xff, 0xff])],
    ["bad-frame", encodeFrame({ case: "resolve", value: { requestId: 1 } })],
    // Hello with version 1 and role 99.
    ["bad-frame", Buffer.from([0, 0, 0, 6, 0x0a, 4, 0x08, 1, 0x10, 99])],
    ["unauthorized", encodeFrame({ case: "hello", value: { role: Role.PROXY, token: "guess" } })],
    [
      "unknown-version",
      encodeFrame({
        case: "hello",
        value: { protocolVersion: 2, role: Role.PROXY, name: "x", processId: Buffer.alloc(16, 1) },
      }),
    ],
  ];
  for (const [code, bytes] of cases) {
    const peer = new RawPeer(coordinator.port);
    peer.socket.write(bytes);
    assert.equal(await peer.problem(), code);
  }
  const status = await coordinator.control.ask({ case: "status", value: {} });
  assert.equal(status.case, "status");
});

test("F2 a proxy that asks and does not read costs bounded memory and delays nobody", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({});
  t.after(async () => coordinator.stop());
  const healthy = new ProxyUnderTest(coordinator);
  const stuck = new RawPeer(coordinator.port);
  const processId = Buffer.alloc(16, 7);
  const hello = { protocolVersion: 1, role: Role.PROXY, name: "stuck", processId };
  stuck.socket.write(encodeFrame({ case: "hello", value: hello }));
  await until("welcome", () => stuck.frames.length > 0);
  stuck.socket.pause();
  // Each resolve of a service that is unknown is answered; none of the answers is read.
  const service = "s".repeat(60);
  const wire = encodeFrame({
    case: "resolve",
    value: { requestId: 1, service, key: "k".repeat(256) },
  });
  const flood = Buffer.concat(Array.from({ length: 2000 }, () => wire));
  const flooding = { now: true };
  t.after(() => {
    flooding.now = false;
    stuck.socket.destroy();
  });
  void (async () => {
    while (flooding.now && !stuck.socket.destroyed) {
      if (!stuck.socket.write(flood)) await once(stuck.socket, "drain").catch(() => undefined);
    }
  })();
  for (let round = 0; round < 20; round += 1) {
    const before = healthy.applied;
    await coordinator.define({ name: `service-${round}` });
    await until("the healthy one follows", () => healthy.applied > before);
  }
  flooding.now = false;
  const { rss } = await memoryOf(coordinator.process.pid);
  assert.ok(rss < 400 * 1024 * 1024, `${rss} bytes`);
});

async function memoryOf(pid: number): Promise<{ rss: number }> {
  const { readFile } = await import("node:fs/promises");
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return { rss: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024 };
}
