import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import test, { type TestContext } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import type { LogFields } from "@belay/model";
import {
  createBootClock,
  createSystemRandom,
  encodeFrame,
  type FrameBody,
  type FrameBodyInit,
  PeerSocket,
} from "@belay/protocol";
import { Gate } from "./gate.ts";
import { ShardHooks } from "./shard-hooks.ts";
import type { Visitor } from "./visit.ts";
import { attachWebSocket, CLOSE_MOVED } from "./web-socket.ts";

const quiet = (_fields: LogFields, _message: string): void => undefined;
const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const incarnation = 10n;
const epoch = 20n;
const leaseMs = 5000;

/** What a coordinator says of a server that owns every key it asks for. */
function answerTo(body: FrameBody): FrameBodyInit | undefined {
  const asOf = epoch;
  if (body.case === "hello") {
    const generation = Buffer.alloc(16, 1);
    return { case: "welcome", value: { generation, term: 1n, revision: asOf, marginMs: 200 } };
  }
  if (body.case === "register") {
    const { requestId } = body.value;
    const terms = { leaseMs, marginMs: 200, drainMs: 1000 };
    return { case: "registered", value: { requestId, incarnation, asOf, ...terms } };
  }
  if (body.case === "renewServerLease") {
    return { case: "serverLease", value: { nonce: body.value.nonce, incarnation, asOf } };
  }
  if (body.case !== "confirm") return undefined;
  const { requestId, key } = body.value;
  return { case: "confirmed", value: { requestId, incarnation, key, owned: true, epoch, asOf } };
}

/** A registered gate, and a clock that can be set forward. */
async function startGate(t: TestContext) {
  let send: ((body: FrameBodyInit) => void) | undefined;
  const server = createServer((socket) => {
    const peer = new PeerSocket({
      socket,
      outgoingBytesMax: 1024 * 1024,
      onFrame: (body) => {
        const answer = answerTo(body);
        if (answer !== undefined) peer.send(encodeFrame(answer));
      },
      onEnd: () => undefined,
    });
    send = (body) => peer.send(encodeFrame(body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const boot = createBootClock();
  const time = { aheadMs: 0 };
  const registered = Promise.withResolvers<void>();
  const hooks = new ShardHooks(logger, 1000);
  const gate = new Gate({
    coordinator: { host: "127.0.0.1", port },
    token: "",
    software: "test",
    session: { service: "world", serverId: "s-1", address: "127.0.0.1:1", zone: "", capacity: 0 },
    clock: { now: () => boot.now() + time.aheadMs },
    random: createSystemRandom(),
    logger,
    hooks,
    onChange: ({ type }) => {
      if (type === "registered") registered.resolve();
    },
  });
  t.after(() => gate.close());
  await registered.promise;
  /** Settles once the gate has told what runs for the key `a`. */
  const revoke = async (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const nothing = (): void => undefined;
    const visitor = { admitted: nothing, refused: nothing, lost: nothing, leaving: resolve };
    gate.enter("request", { incarnation, key: "a", epoch }, visitor);
    const shards = [{ key: "a", epoch }];
    send?.({ case: "revoke", value: { incarnation, shards, drainMs: 60_000 } });
    await promise;
  };
  return { gate, hooks, time, revoke };
}

/** Enters with a request for the key `a`; what becomes of it. */
async function enter(gate: Gate, handle: () => void): Promise<string> {
  const said = Promise.withResolvers<string>();
  const visitor: Visitor = {
    admitted: (visit) => {
      handle();
      said.resolve(`handled at ${visit.epoch}`);
    },
    refused: ({ reason, asOf }) => said.resolve(`refused as ${reason} as of ${asOf}`),
    lost: () => said.resolve("lost"),
  };
  gate.enter("request", { incarnation, key: "a", epoch: 0n }, visitor);
  return said.promise;
}

test("G1 what was admitted with others is judged anew after their handlers: a long one costs the lease", async (t) => {
  const { gate, time } = await startGate(t);
  const stall = (): void => {
    time.aheadMs += leaseMs;
  };
  const both = [enter(gate, stall), enter(gate, () => undefined)];
  assert.deepEqual(await Promise.all(both), [
    `handled at ${epoch}`,
    `refused as expired as of ${epoch}`,
  ]);
});

test("G5 the lease that ends while onAcquire runs is a refusal", async (t) => {
  const { gate, hooks, time } = await startGate(t);
  hooks.acquireHook = () => {
    time.aheadMs += leaseMs;
  };
  const first = await enter(gate, () => undefined);
  assert.equal(first, `refused as expired as of ${epoch}`);
});

/** A socket for the key `a` whose handshake `ws` holds up; how it closed, and what ran. */
async function openHeldUp(t: TestContext, gate: Gate, meanwhile: () => Promise<void> | void) {
  const server = createHttpServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const sockets = new WebSocketServer({
    noServer: true,
    verifyClient: async (_info: unknown, decide: (isWelcome: boolean) => void) => {
      await meanwhile();
      decide(true);
    },
  });
  let handlers = 0;
  const handle = (): void => {
    handlers += 1;
  };
  attachWebSocket({ gate, logger, server, sockets, handle });
  const { port } = server.address() as AddressInfo;
  const headers = {
    "x-belay-incarnation": String(incarnation),
    "x-belay-key": "a",
    "x-belay-epoch": "0",
  };
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, { headers });
  const [code] = await once(socket, "close");
  return { code: code as number, handlers };
}

test("G1 a socket whose handshake outlives the lease never reaches the handler", async (t) => {
  const { gate, time } = await startGate(t);
  const closed = await openHeldUp(t, gate, () => {
    time.aheadMs += leaseMs;
  });
  assert.deepEqual(closed, { code: 1006, handlers: 0 });
});

test("W2 a socket whose key moves during the handshake is closed with 4421, without a handler", async (t) => {
  const { gate, revoke } = await startGate(t);
  const closed = await openHeldUp(t, gate, revoke);
  assert.deepEqual(closed, { code: CLOSE_MOVED, handlers: 0 });
});
