// A server of the service `world` with the SDK that writes down every run of its handlers.
// Environment: PORT, SERVER_ID, RECORD, BELAY_COORDINATOR.
import { createServer } from "node:http";
import { connect } from "@belay/server-sdk";
import { WebSocketServer } from "ws";
import { Recorder } from "./record.ts";

const { PORT = "", SERVER_ID = "", RECORD = "", SERVICE = "world" } = process.env;
const recorder = new Recorder(RECORD, SERVER_ID);
const visits = new Map<string, number>();

const belay = await connect({
  service: SERVICE,
  address: `127.0.0.1:${PORT}`,
  serverId: SERVER_ID,
});

const server = createServer(
  belay.handler((request, response, { key, epoch }) => {
    const start = process.hrtime.bigint();
    const name = key ?? "";
    const count = (visits.get(name) ?? 0) + 1;
    visits.set(name, count);
    let length = 0;
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
    });
    request.on("end", () => {
      response.setHeader("content-type", "application/json");
      response.end(
        JSON.stringify({
          server: SERVER_ID,
          key: name,
          epoch: String(epoch),
          count,
          path: request.url,
          length,
          headers: request.headers,
        }),
      );
      if (key !== undefined) recorder.write(name, epoch, start);
    });
  }),
);
const sockets = new WebSocketServer({ noServer: true });
belay.attachWebSocket(server, sockets, (socket, _request, { key, epoch }) => (data) => {
  const start = process.hrtime.bigint();
  socket.send(JSON.stringify({ server: SERVER_ID, key, echo: String(data) }));
  if (key !== undefined) recorder.write(key, epoch, start);
});
belay.drainOnSignal(() => process.exit(0));
server.listen(Number(PORT), "127.0.0.1", () => {
  process.stdout.write(`ready ${SERVER_ID}\n`);
});
