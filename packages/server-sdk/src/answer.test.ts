import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import test, { type TestContext } from "node:test";
import type { ServerSession } from "@belay/ownership";
import { GuardedAnswer, withoutOwnHeaders } from "./answer.ts";
import { Visit } from "./visit.ts";

interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly trailers: NodeJS.Dict<string>;
  readonly body: string;
}

/** Lets `handle` answer one request under a visit whose right to answer the test decides. */
async function ask(
  t: TestContext,
  handle: (
    reply: ServerResponse,
    guard: { answer: GuardedAnswer; owned: { now: boolean } },
  ) => void,
): Promise<Answered> {
  const owned = { now: true };
  const session = { mayAnswer: () => owned.now } satisfies Partial<ServerSession>;
  const server = createServer((incoming, reply) => {
    const visit = new Visit({
      id: 1,
      key: "a",
      incarnation: 1n,
      visitor: { admitted: () => {}, refused: () => {}, lost: () => {} },
      session,
      onEnd: () => {},
    });
    visit.stage = "inside";
    visit.epoch = 7n;
    handle(reply, { answer: new GuardedAnswer(incoming, reply, visit), owned });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  const outgoing = request({ port: address.port, host: "127.0.0.1", agent: false });
  // After the answer has begun, a reset shows on the answer too: that one is judged.
  outgoing.on("error", () => {});
  outgoing.end();
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  let body = "";
  for await (const chunk of incoming) body += String(chunk);
  const { statusCode = 0, headers, trailers } = incoming;
  return { status: statusCode, headers, trailers, body };
}

test("an answer carries the epoch, and no x-belay-* of the application", async (t) => {
  const answered = await ask(t, (reply) => {
    reply.setHeader("x-belay-refused", "1; as-of=1; reason=moved");
    reply.setHeader("X-Belay-Epoch", "99");
    reply.setHeader("trailer", "x-belay-late");
    reply.setHeader("x-own", "1");
    reply.writeHead(201, "Made", { "x-belay-reason": "no", "content-type": "text/x" });
    reply.write("o");
    reply.addTrailers({ "x-belay-late": "1", late: "2" });
    reply.end("k");
  });
  assert.equal(answered.status, 201);
  assert.equal(answered.body, "ok");
  assert.equal(answered.headers["x-belay-epoch"], "7");
  assert.equal(answered.headers["x-own"], "1");
  assert.equal(answered.headers["content-type"], "text/x");
  assert.equal(answered.headers["x-belay-refused"], undefined);
  assert.equal(answered.headers["x-belay-reason"], undefined);
  assert.deepEqual({ ...answered.trailers }, { late: "2" });
});

test("S5 an answer that has not begun when ownership is lost becomes 503 outcome-unknown", async (t) => {
  const answered = await ask(t, (reply, { owned }) => {
    reply.setHeader("set-cookie", "secret=1");
    owned.now = false;
    reply.writeHead(200, { "content-type": "text/x" });
    reply.end("must not be seen");
    reply.setHeader("x-late", "no throw");
  });
  assert.equal(answered.status, 503);
  assert.equal(answered.headers["x-belay-reason"], "outcome-unknown");
  assert.equal(answered.headers["set-cookie"], undefined);
  assert.equal(answered.headers["x-belay-refused"], undefined);
  assert.ok(!answered.body.includes("must not"));
});

test("G6 an answer that has begun is reset, never ended cleanly", async (t) => {
  const answering = ask(t, (reply, { owned }) => {
    reply.writeHead(200, { "content-length": "4" });
    reply.write("ab", () => {
      owned.now = false;
      reply.end("cd");
    });
  });
  await assert.rejects(answering, /aborted|ECONNRESET|hang up/);
});

test("G6 the same when told, and what the handler does then is harmless", async (t) => {
  const answering = ask(t, (reply, { answer }) => {
    reply.write("a", () => {
      answer.cut();
      reply.write("b");
      reply.end();
      answer.cut();
    });
  });
  await assert.rejects(answering, /aborted|ECONNRESET|hang up/);
});

test("own headers are dropped from every form that node takes", () => {
  assert.deepEqual(withoutOwnHeaders({ "X-Belay-Key": 1, a: 2 }), { a: 2 });
  assert.deepEqual(withoutOwnHeaders(["x-belay-key", "1", "a", "2"]), ["a", "2"]);
  assert.deepEqual(
    withoutOwnHeaders([
      ["x-belay-key", "1"],
      ["a", "2"],
    ]),
    [["a", "2"]],
  );
  assert.equal(withoutOwnHeaders(200), 200);
  assert.equal(withoutOwnHeaders("OK"), "OK");
});
