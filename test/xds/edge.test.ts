import assert from "node:assert/strict";
import { connect } from "node:http2";
import { type IncomingMessage, request as httpRequest } from "node:http";
import type { Duplex } from "node:stream";
import { connect as connectTcp } from "node:net";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { fire, pause, until } from "@belay/testkit";
import { ControlPlaneUnderTest } from "./control-plane-under-test.ts";
import { EnvoyUnderTest, needsEnvoy, Upstream } from "./envoy-under-test.ts";

const service = {
  file: "app.yaml",
  text: `service: app
key: none
routes:
  - match: { path: /healthz }
    respond: { status: 202, body: '{"ok":true}', content-type: application/json }
  - match: { prefix: /plain }
    websocket: { enabled: false }
  - match: { prefix: /quick }
    timeout: 1s
`,
};

const bodyOf = async (message: IncomingMessage): Promise<number> => {
  let bytes = 0;
  for await (const chunk of message) bytes += (chunk as Buffer).length;
  return bytes;
};

/** What the server got: path and body size; /refuse/N refuses the first N attempts of a name. */
const startApp = async (): Promise<Upstream> => {
  const attempts = new Map<string, number>();
  const app = await Upstream.start(async (request, response) => {
    const url = request.url ?? "";
    const [, refuse, count, name = ""] = /^\/(refuse|misdirect)\/(\d+)\/(\w+)/.exec(url) ?? [];
    const attempt = (attempts.get(name) ?? 0) + 1;
    attempts.set(name, attempt);
    if (url.startsWith("/quick")) return;
    const bytes = await bodyOf(request);
    if (refuse !== undefined && attempt <= Number(count)) {
      if (refuse === "refuse") response.setHeader("x-belay-refused", "1; as-of=1; reason=moved");
      response.writeHead(421).end();
      return;
    }
    response.setHeader("server", "app/1");
    response.end(
      JSON.stringify({ url, bytes, attempt, forwarded: request.headers["x-forwarded-for"] }),
    );
  });
  // After the handshake Envoy passes bytes on: frames need not be real.
  app.server.on("upgrade", (_, socket: Duplex) => {
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
    );
    socket.on("error", () => socket.destroy());
    socket.pipe(socket);
  });
  return app;
};

/** Upgrades, stays silent for a while, and answers what comes back, or the status of a refusal. */
const echo = async (port: number, path: string, waitMs: number): Promise<string | number> => {
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  };
  const outgoing = httpRequest({ host: "127.0.0.1", port, path, headers });
  const { promise, resolve } = Promise.withResolvers<Duplex | number>();
  outgoing.on("upgrade", (_, socket: Duplex) => resolve(socket));
  outgoing.on("response", (response) => resolve(response.resume().statusCode ?? 0));
  outgoing.end();
  const socket = await promise;
  if (typeof socket === "number") return socket;
  await pause(waitMs);
  socket.write("hello");
  const [data] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  return data.toString();
};

/** A request whose path is sent byte for byte. */
const rawPath = async (port: number, path: string): Promise<string> => {
  const socket = connectTcp(port, "127.0.0.1");
  socket.write(`GET ${path} HTTP/1.1\r\nhost: app\r\nconnection: close\r\n\r\n`);
  let text = "";
  for await (const chunk of socket.setEncoding("utf8")) text += String(chunk);
  return /"url":"([^"]*)"/.exec(text)?.[1] ?? text;
};

describe("the edge that the translation makes", { skip: needsEnvoy }, () => {
  let plane: ControlPlaneUnderTest;
  let envoy: EnvoyUnderTest;
  let app: Upstream;

  before(async () => {
    app = await startApp();
    plane = new ControlPlaneUnderTest({ module: null, accessLog: "plain" });
    const xdsPort = await plane.server.listen("127.0.0.1", 0);
    plane.endpoints("app", app.address);
    plane.apply([service]);
    envoy = await EnvoyUnderTest.start({ xdsPort });
    await until("the edge answers", () => envoy.get("/"));
  });

  after(async () => {
    await envoy?.stop();
    await plane?.server.close();
    app?.stop();
  });

  test("answers that the edge makes by itself", async () => {
    const reply = await envoy.get("/healthz");
    assert.equal(reply.status, 202);
    assert.equal(reply.body, '{"ok":true}');
    assert.equal(reply.headers["content-type"], "application/json");
  });

  test("the server's own header and the client's address come through", async () => {
    const reply = await envoy.get("/x");
    assert.equal(reply.headers["server"], "app/1");
    assert.match(reply.body, /"forwarded":"[\d.:a-f]+"/);
  });

  test("paths: dots are resolved, escaped bytes stay as they came", async () => {
    const kept = [
      "/s/a%2Fb/x",
      "/s/%E2%82%AC/x",
      "/s//x",
      "/s/a%20b",
      "/s/a%5Cb",
      "/s/a;b,c=1",
      "/s/k?q=%2F//",
    ];
    for (const path of kept) assert.equal(await rawPath(envoy.port, path), path);
    assert.equal(await rawPath(envoy.port, "/s/../admin"), "/admin");
    assert.equal(await rawPath(envoy.port, "/s/%2e%2e/admin"), "/admin");
    // RFC 3986 6.2.2.2: an escaped unreserved character is that character; a decoded key is the same.
    assert.equal(await rawPath(envoy.port, "/s/%61lice"), "/s/alice");
  });

  test("HTTP/2 in cleartext", async () => {
    const session = connect(`http://127.0.0.1:${envoy.port}`);
    const stream = session.request({ ":path": "/two" });
    const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
    stream.resume();
    await once(stream, "end");
    session.close();
    assert.equal(headers[":status"], 200);
  });

  test("WebSockets pass, and outlive the route's time-out", async () => {
    assert.equal(await echo(envoy.port, "/chat", 0), "hello");
    assert.equal(await echo(envoy.port, "/quick", 1500), "hello");
    assert.equal((await envoy.get("/quick")).status, 504);
  });

  test("a route without WebSockets refuses the upgrade", async () => {
    assert.equal(await echo(envoy.port, "/plain", 0), 403);
  });

  test("R1, R4: a refusal of ours is sent again with its whole body, any other answer is not", async () => {
    const body = Buffer.alloc(900_000, "x");
    const sent = { method: "POST", body };
    const refused = await fire(envoy.port, { path: "/refuse/2/one", ...sent });
    assert.deepEqual([refused.status, JSON.parse(refused.body).attempt], [200, 3]);
    assert.equal(JSON.parse(refused.body).bytes, 900_000);
    const misdirected = await fire(envoy.port, { path: "/misdirect/1/two", ...sent });
    assert.equal(misdirected.status, 421);
  });

  test("R5: a body above the replay limit is not sent again", async () => {
    const body = Buffer.alloc(3_000_000, "x");
    const reply = await fire(envoy.port, { path: "/refuse/1/three", method: "POST", body });
    assert.ok([421, 507].includes(reply.status), String(reply.status));
  });

  test("R3: a connection that is refused is tried again, until there is an endpoint", async () => {
    app.server.close();
    const outgoing = httpRequest({ host: "127.0.0.1", port: envoy.port, path: "/x" });
    outgoing.end();
    const [reply] = (await once(outgoing, "response")) as [IncomingMessage];
    reply.resume();
    assert.equal(reply.statusCode, 503);
    assert.ok((await envoy.stat("cluster.app.upstream_rq_retry")) > 20);
  });

  test("the access log has one JSON line per request", async () => {
    const line = await until(
      "a line in the log",
      () => /^\{.*"path":"\/healthz".*\}$/m.exec(envoy.output)?.[0],
    );
    const entry = JSON.parse(line) as Record<string, unknown>;
    assert.equal(entry["route"], "app path /healthz");
    assert.equal(entry["status"], 202);
  });

  test("headers that trickle in are cut off after 10 s, whatever still comes", async () => {
    const socket = connectTcp(envoy.port, "127.0.0.1");
    await once(socket, "connect");
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n");
    const startedMs = performance.now();
    const trickle = setInterval(() => socket.write("x"), 500);
    try {
      const [answer] = await once(socket, "data", { signal: AbortSignal.timeout(30_000) });
      assert.match(String(answer), /^HTTP\/1\.1 408 /);
      assert.ok(performance.now() - startedMs > 9_000);
    } finally {
      clearInterval(trickle);
      socket.destroy();
    }
  });
});
