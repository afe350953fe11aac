// A server with the SDK as a process of its own, which writes down every run of its handlers.
// Environment: PORT, BELAY_SERVER_ID, BELAY_COORDINATOR, RECORD.
import { createServer } from "node:http";
import { connect } from "@belay/server-sdk";
import { WebSocketServer } from "ws";
import { Recorder } from "../promise/record.ts";

const { PORT = "", BELAY_SERVER_ID = "", RECORD = "" } = process.env;
const recorder = new Recorder(RECORD, BELAY_SERVER_ID);
const counts = new Map<string, number>();

const server = createServer();
server.listen(Number(PORT), "127.0.0.1");
const belay = await connect({ service: "world", address: `127.0.0.1:${PORT}` });
belay.onRelease((key, epoch, reason) => {
  counts.delete(key);
  process.stdout.write(`released ${key} ${epoch} ${reason}\n`);
});

/** The number of milliseconds that `/work/250` asks for. */
const workOf = (url = "/"): number => Number(/^\/work\/(\d+)$/.exec(url)?.[1] ?? 0);

async function work(key: string, epoch: bigint, ms: number): Promise<object> {
  const start = process.hrtime.bigint();
  const count = (counts.get(key) ?? 0) + 1;
  counts.set(key, count);
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
  // A frozen process wakes up inside a handler: what it computes then has no effect (G6).
  if (belay.epochOf(key) === epoch) recorder.write(key, epoch, start);
  return { server: BELAY_SERVER_ID, epoch: String(epoch), count };
}

server.on(
  "request",
  belay.handler(async (request, reply, { key = "", epoch }) => {
    const result = await work(key, epoch, workOf(request.url));
    reply.setHeader("content-type", "application/json");
    reply.end(JSON.stringify(result));
  }),
);
const sockets = new WebSocketServer({ noServer: true });
belay.attachWebSocket(server, sockets, (socket, _request, { key = "", epoch }) => async (data) => {
  const ms = Number(Buffer.isBuffer(data) ? data.toString() : 0);
  socket.send(JSON.stringify(await work(key, epoch, ms)));
});
belay.drainOnSignal(() => process.exit(0));
process.stdout.write(`ready ${belay.incarnation}\n`);
