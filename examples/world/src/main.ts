import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "@belay/server-sdk";
import { WebSocketServer } from "ws";
import { answer } from "./http.ts";
import { attachSockets } from "./socket.ts";
import { World } from "./world.ts";

const HOST = process.env["HOST"] ?? "127.0.0.1";
const portText = process.env["PORT"] ?? "auto";

const world = new World();
const server = createServer();
server.listen(portText === "auto" ? 0 : Number(portText), HOST);
await once(server, "listening");
const address = server.address();
if (address === null || typeof address === "string") throw new Error("not a TCP listener");

const belay = await connect({
  service: process.env["BELAY_SERVICE"] ?? "world",
  address: `${HOST}:${address.port}`,
});
belay.onRelease((player) => world.forget(player));

const site = { belay, world };
const admitted = belay.handler(async (request, reply, context) =>
  answer(site, { request, reply, context }),
);
server.on("request", (request, reply) => {
  // Whoever watches this process asks it directly, without a key: that is not Belay's business.
  if (request.url === "/healthz") reply.end("ok\n");
  else admitted(request, reply);
});
attachSockets(site, server, new WebSocketServer({ noServer: true, maxPayload: 64 * 1024 }));
belay.drainOnSignal(() => {
  server.close();
  server.closeIdleConnections();
});

console.log(`world: server ${belay.serverId} is ready on http://${HOST}:${address.port}`);
