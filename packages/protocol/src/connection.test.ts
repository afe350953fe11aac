import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import test, { type TestContext } from "node:test";
import type { LogFields, Logger } from "@belay/model";
import {
  CoordinatorConnection,
  type CoordinatorConnectionOptions,
  createBootClock,
  createSystemRandom,
  encodeFrame,
  type FrameBody,
  type PeerEnd,
  PeerSocket,
  RequestFailed,
  Role,
} from "./index.ts";

const quiet = (_fields: LogFields, _message: string): void => undefined;
const logger: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const generation = new Uint8Array(16).fill(1);

interface Peer {
  readonly socket: PeerSocket;
  readonly frames: FrameBody[];
  end: PeerEnd | undefined;
}

/** A listener whose peers are answered by `reply`. */
async function listen(
  t: TestContext,
  reply: (peer: Peer, body: FrameBody) => void,
  outgoingBytesMax = 1024 * 1024,
): Promise<{ server: Server; peers: Peer[]; port: number }> {
  const peers: Peer[] = [];
  const sockets: Socket[] = [];
  const server = createServer((raw) => {
    sockets.push(raw);
    const frames: FrameBody[] = [];
    const peer: Peer = {
      frames,
      end: undefined,
      socket: new PeerSocket({
        socket: raw,
        outgoingBytesMax,
        onFrame: (body) => {
          frames.push(body);
          reply(peer, body);
        },
        onEnd: (end) => {
          peer.end = end;
        },
      }),
    };
    peers.push(peer);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  return { server, peers, port };
}

function welcome(peer: Peer, term: bigint, revision = 1n): void {
  const value = { generation, term, revision, marginMs: 200 };
  peer.socket.send(encodeFrame({ case: "welcome", value }));
}

function connectTo(
  t: TestContext,
  port: number,
  options: Partial<CoordinatorConnectionOptions> = {},
): CoordinatorConnection {
  const connection = new CoordinatorConnection({
    address: { host: "127.0.0.1", port },
    role: Role.CONTROL_PLANE,
    name: "test",
    software: "test",
    clock: createBootClock(),
    random: createSystemRandom(),
    logger,
    ...options,
  });
  t.after(() => connection.close());
  return connection;
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!condition()) {
    assert.ok(performance.now() < deadline, `never true: ${condition.toString()}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("a request is answered by the frame with its id, a refusal rejects", async (t) => {
  const { port } = await listen(t, (peer, body) => {
    if (body.case === "hello") welcome(peer, 3n);
    if (body.case !== "ask") return;
    const { requestId, question } = body.value;
    const value =
      question.case === "status"
        ? { requestId, answer: { case: "status", value: { shards: 7n } } as const }
        : { requestId, problemCode: "server-unknown", problemMessage: "no such server" };
    peer.socket.send(encodeFrame({ case: "answer", value }));
  });
  const connection = connectTo(t, port);
  await until(() => connection.connected);
  const status = await connection.ask({ case: "status", value: {} });
  assert.ok(status.case === "status" && status.value.shards === 7n);
  await assert.rejects(connection.ask({ case: "drain", value: { serverId: "x" } }), (error) => {
    assert.ok(error instanceof RequestFailed);
    assert.equal(error.problemCode, "server-unknown");
    return true;
  });
});

test("T4 after a lost connection the next Hello names generation, revision and term", async (t) => {
  const { peers, port } = await listen(t, (peer, body) => {
    if (body.case === "hello") welcome(peer, 3n, 50n);
    if (body.case === "goodbye") peer.socket.close();
  });
  const connection = connectTo(t, port);
  await until(() => connection.connected);
  const pending = connection.request(
    (requestId) => ({ case: "mint", value: { requestId } }),
    (body) => (body.case === "minted" ? body.value : undefined),
  );
  connection.send({ case: "goodbye", value: {} });
  await assert.rejects(pending, { code: "lost" });
  await until(() => peers.length === 2 && connection.connected);
  const hello = peers[1]?.frames[0];
  assert.ok(hello?.case === "hello");
  assert.deepEqual(Uint8Array.from(hello.value.generation), generation);
  assert.equal(hello.value.revision, 50n);
  assert.equal(hello.value.term, 3n);
});

test("G2 a coordinator of a lower term than seen is never talked to", async (t) => {
  let hellos = 0;
  const { peers, port } = await listen(t, (peer, body) => {
    if (body.case !== "hello") return;
    hellos += 1;
    welcome(peer, hellos === 2 ? 4n : 5n);
    if (hellos === 1) peer.socket.close();
  });
  const reasons: string[] = [];
  const connection = connectTo(t, port, {
    onConnected: () => connection.send({ case: "dropped", value: { revision: 9n } }),
    onDisconnected: (reason) => reasons.push(reason.code),
  });
  await until(() => peers.length === 3 && (peers[2]?.frames.length ?? 0) === 2);
  assert.ok(reasons.includes("stale-term"));
  assert.deepEqual(
    peers[1]?.frames.map((body) => body.case),
    ["hello"],
  );
});

test("F2 a reader that does not read is cut, others are served", async (t) => {
  const { peers, port } = await listen(t, (peer, body) => {
    if (body.case === "hello") welcome(peer, 1n);
  });
  const slow = connectTo(t, port);
  const quick = connectTo(t, port);
  await until(() => slow.connected && quick.connected && peers.length === 2);
  // Both ends live in this turn, so nothing is read until the loop below yields.
  const bytes = encodeFrame({ case: "problem", value: { message: "x".repeat(100_000) } });
  const [first, second] = peers;
  for (let sent = 0; sent < 200; sent += 1) first?.socket.send(bytes);
  assert.equal(first?.end, "slow-reader");
  const answered = quick.ask({ case: "status", value: {} }, 1000);
  await until(() => second?.frames.some((body) => body.case === "ask") === true);
  second?.socket.fail({ code: "test", message: "end" });
  await assert.rejects(answered, { code: "lost" });
});

test("broken bytes are answered by a Problem and the end", async (t) => {
  const { peers, server } = await listen(t, () => undefined);
  const { connect } = await import("node:net");
  const raw = connect(server.address() as AddressInfo as { port: number });
  const received: Buffer[] = [];
  raw.on("data", (chunk: Buffer) => received.push(chunk));
  raw.write("GET / HTTP/1.1\r\n\r\n");
  await once(raw, "close");
  assert.match(Buffer.concat(received).toString(), /bad-frame/);
  assert.equal(peers[0]?.end, "bad-frame");
});

test("a coordinator that answers nothing is left, and tried again", async (t) => {
  const { peers, port } = await listen(t, () => undefined);
  const reasons: string[] = [];
  connectTo(t, port, { onDisconnected: (reason) => reasons.push(reason.code) });
  await until(() => peers.length === 2);
  assert.deepEqual(reasons, ["silent"]);
});
