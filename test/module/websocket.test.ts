import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { until } from "@belay/testkit";
import { EdgeUnderTest } from "./edge-under-test.ts";
import { FakeServer } from "./fake-server.ts";
import { Http2Client } from "./http2-client.ts";

const [a, b] = [new FakeServer("a"), new FakeServer("b")];
let edge: EdgeUnderTest;
before(async () => {
  edge = await EdgeUnderTest.start({
    services: [
      {
        name: "docs",
        guarded: false,
        servers: [a, b],
        drainMs: 1500,
        routes: [
          {
            prefix: "/",
            timeout: "0s",
            config: { keys: [{ from: "path", template: "/{key}", strip: false }] },
          },
        ],
      },
    ],
  });
});
after(async () => edge.stop());

async function socketTo(key: string, server: FakeServer): ReturnType<EdgeUnderTest["socket"]> {
  edge.coordinator.own("docs", key, edge.server(server.name));
  const socket = await edge.socket(`/${key}`);
  assert.equal(await socket.ask("hi"), `${server.name}:hi`);
  return socket;
}

function serverSide(key: string): FakeServer["sockets"][number]["socket"] {
  const found = [...a.sockets, ...b.sockets].find((one) => one.key === key);
  if (found === undefined) throw new Error(`no socket of ${key}`);
  return found.socket;
}

test("W2 an idle socket is closed with 4421 as soon as its key moves, and others are not", async () => {
  const moved = await socketTo("k1", a);
  const other = await socketTo("k2", a);
  edge.coordinator.startMove("docs", "k1");
  assert.deepEqual(await moved.end(), { code: 4421, reason: "moved" });
  edge.coordinator.finishMove("docs", "k1", edge.server("b"));
  const again = await edge.socket("/k1");
  assert.equal(await again.ask("hi"), "b:hi");
  assert.equal(await other.ask("still"), "a:still");
  again.socket.close();
  other.socket.close();
});

test("W2 a socket over HTTP/2 is closed with 4421 too", async () => {
  edge.coordinator.own("docs", "k9", edge.server("a"));
  const client = new Http2Client(edge.port);
  const stream = await client.socket("/k9");
  let bytes = Buffer.alloc(0);
  stream.on("data", (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
  });
  // A masked text frame «hi» with a mask of zeros.
  stream.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]));
  await until("the echo", () => bytes.includes("a:hi"));
  const echo = bytes.length;
  edge.coordinator.startMove("docs", "k9");
  await once(stream, "end");
  const close = bytes.subarray(echo);
  assert.deepEqual(
    [close[0], close.readUInt16BE(2), close.subarray(4).toString()],
    [0x88, 4421, "moved"],
  );
  stream.close();
  await client.close();
});

test("M4 quiet is said once the socket of the moved key is gone", async () => {
  const moved = await socketTo("k3", a);
  edge.coordinator.startMove("docs", "k3");
  await moved.end();
  await until("quiet", () =>
    edge.coordinator.frames.some((frame) => frame.case === "quiet" && frame.value.key === "k3"),
  );
});

test("W2 a fragmented message reaches the client whole, then 4421", async () => {
  const moved = await socketTo("k5", a);
  const server = serverSide("k5");
  const ping = new Promise<void>((resolve) => moved.socket.once("ping", () => resolve()));
  server.send("first half, ", { fin: false });
  server.ping();
  await ping; // so the first fragment has passed the edge
  edge.coordinator.startMove("docs", "k5");
  await until("the move is applied", () => edge.coordinator.dropped >= edge.coordinator.revision);
  assert.equal(moved.closed, undefined);
  server.send("second half", { fin: true });
  assert.deepEqual(await moved.end(), { code: 4421, reason: "moved" });
  assert.deepEqual(moved.messages.slice(1), ["first half, second half"]);
});

test("M2 a request that is still running at the drain deadline is cut, not ended cleanly", async () => {
  edge.coordinator.own("docs", "k6", edge.server("a"));
  a.answer = () => {};
  const answer = edge.ask("/k6");
  await until("it runs", () => a.seen.some((seen) => seen.path === "/k6"));
  edge.coordinator.startMove("docs", "k6");
  const { status, headers } = await answer;
  assert.deepEqual([status, headers["x-belay-reason"]], [503, "outcome-unknown"]);
  a.answer = undefined;
  await until("quiet", () =>
    edge.coordinator.frames.some((frame) => frame.case === "quiet" && frame.value.key === "k6"),
  );
});

test("M2 an answer that has begun is reset at the drain deadline", async () => {
  edge.coordinator.own("docs", "k7", edge.server("a"));
  a.answer = (_request, response) => {
    response.writeHead(200, { "content-length": 1000 });
    response.write("begun");
  };
  const answer = edge.ask("/k7");
  await until("it runs", () => a.seen.some((seen) => seen.path === "/k7"));
  edge.coordinator.startMove("docs", "k7");
  await assert.rejects(answer);
  a.answer = undefined;
});

test("M4 the end of a server ends its sockets", async () => {
  const c = edge.coordinator.register("docs", "c", b.address);
  edge.coordinator.own("docs", "k8", c);
  const socket = await edge.socket("/k8");
  assert.equal(await socket.ask("hi"), "b:hi");
  edge.coordinator.end(c);
  await socket.end();
});
