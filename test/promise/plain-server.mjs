// A server that knows nothing of Belay, for `belay run`: HTTP and WebSocket echo, written down by key.
// Environment: PORT, HOST, RECORD, BELAY_SERVER_ID.
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { WebSocketServer } from "ws";

const { PORT, HOST = "127.0.0.1", RECORD, BELAY_SERVER_ID } = process.env;

function record(key, epoch, start) {
  const line = [BELAY_SERVER_ID, key, epoch, start, process.hrtime.bigint()].join("\t");
  appendFileSync(RECORD, `${line}\n`);
}

const server = createServer((request, response) => {
  const start = process.hrtime.bigint();
  const key = request.headers["x-belay-key"];
  const epoch = request.headers["x-belay-epoch"];
  request.resume();
  request.on("end", () => {
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({ server: BELAY_SERVER_ID, key, epoch, path: request.url, pid: process.pid }),
    );
    if (key !== undefined) record(key, epoch, start);
  });
});
const sockets = new WebSocketServer({ server });
sockets.on("connection", (socket, request) => {
  const key = request.headers["x-belay-key"];
  const epoch = request.headers["x-belay-epoch"];
  socket.on("error", () => {});
  socket.on("message", (data) => {
    const start = process.hrtime.bigint();
    socket.send(JSON.stringify({ server: BELAY_SERVER_ID, key, echo: String(data) }));
    if (key !== undefined) record(key, epoch, start);
  });
});
server.listen(Number(PORT), HOST, () => {
  process.stdout.write(`ready ${BELAY_SERVER_ID}\n`);
});
