import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type TestContext } from "node:test";
import { MintOutcome, ResolveOutcome } from "@belay/protocol";
import { type Belay, connect, type RequestHandler } from "@belay/server-sdk";
import { fire, until } from "@belay/testkit";
import { CoordinatorUnderTest, quietLogger } from "../coordinator/coordinator-under-test.ts";
import { EdgeUnderTest } from "./edge-under-test.ts";

/** A server of this very process, so that the test sees what its handlers see. */
async function serve(
  t: TestContext,
  coordinator: CoordinatorUnderTest,
  handle: RequestHandler,
): Promise<{ belay: Belay; port: number }> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const belay = await connect({
    service: "world",
    address: `127.0.0.1:${port}`,
    coordinator: coordinator.address,
    logger: quietLogger,
  });
  coordinator.onClose(async () => belay.close());
  server.on("request", belay.handler(handle));
  return { belay, port };
}

test("A7 a key that a server minted is granted to it, nobody else can claim it", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({ minted: true });
  t.after(async () => coordinator.stop());
  const edge = new EdgeUnderTest(coordinator);
  const { belay, port } = await serve(t, coordinator, (_request, reply, { key }) => {
    reply.end(key ?? "session-1");
  });
  const other = await serve(t, coordinator, (_request, reply) => reply.end("other"));
  const { incarnation } = belay;
  const keyless = { "x-belay-incarnation": String(incarnation) };
  assert.equal((await fire(port, { path: "/", headers: keyless })).body, "session-1");
  assert.equal((await edge.resolveOnce("session-1")).outcome, ResolveOutcome.UNKNOWN_KEY);
  const mint = async (by: bigint) =>
    edge.connection.request(
      (requestId) => ({
        case: "mint",
        value: { requestId, service: "world", key: "session-1", incarnation: by },
      }),
      (body) => (body.case === "minted" ? body.value : undefined),
    );
  assert.equal((await mint(incarnation)).outcome, MintOutcome.OK);
  assert.equal((await mint(other.belay.incarnation)).outcome, MintOutcome.CONFLICT);
  await until("it is granted", () => belay.epochOf("session-1") > 0n);
  assert.equal((await edge.send("session-1")).body, "session-1");
});

test("a long poll is told that its key is about to move, and ends cleanly", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({ drainMs: 8000 });
  t.after(async () => coordinator.stop());
  const edge = new EdgeUnderTest(coordinator);
  const aborted: string[] = [];
  const first = await serve(t, coordinator, (_request, reply, { leaving, signal }) => {
    signal.addEventListener("abort", () => aborted.push("signal"));
    leaving.addEventListener("abort", () => reply.end("come back"));
    reply.write("wait… ");
  });
  const poll = edge.send("a");
  await until("it waits", () => first.belay.epochOf("a") > 0n);
  const second = await serve(t, coordinator, (_request, reply) => reply.end("second"));
  await until("the edge knows both", () => edge.addresses.size === 2);
  await coordinator.control.ask({ case: "move", value: { service: "world", key: "a" } });
  const reply = await poll;
  assert.deepEqual([reply.status, reply.body], [200, "wait… come back"]);
  edge.forget("a");
  assert.equal((await edge.send("a")).body, "second");
  assert.ok(second.belay.epochOf("a") > 0n);
  assert.deepEqual(aborted, []);
});

test("signal aborts when the client is gone, and when the drain is over", async (t) => {
  const coordinator = await CoordinatorUnderTest.start({ drainMs: 300 });
  t.after(async () => coordinator.stop());
  const edge = new EdgeUnderTest(coordinator);
  let aborts = 0;
  let begun = 0;
  const first = await serve(t, coordinator, (_request, _reply, { signal }) => {
    begun += 1;
    signal.addEventListener("abort", () => {
      aborts += 1;
    });
  });
  const { port, identity } = await edge.locate("a");
  const { request } = await import("node:http");
  const leaving = request({ port, host: "127.0.0.1", headers: identity });
  leaving.on("error", () => undefined);
  leaving.end();
  await until("it has begun", () => begun === 1);
  leaving.destroy();
  await until("the handler is told", () => aborts === 1);
  const poll = edge.sendOnce("a");
  await until("another has begun", () => begun === 2);
  await serve(t, coordinator, (_request, reply) => reply.end("second"));
  await coordinator.control.ask({ case: "move", value: { service: "world", key: "a" } });
  const reply = await poll;
  assert.equal(reply.headers["x-belay-reason"], "outcome-unknown");
  assert.equal(aborts, 2);
  assert.equal(first.belay.epochOf("a"), 0n);
});
