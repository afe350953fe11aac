// A server with the SDK that answers at once. Arguments: its id, its port.
import { createServer } from "node:http";
import { connect } from "@belay/server-sdk";

const [serverId = "", port = ""] = process.argv.slice(2);
const belay = await connect({ service: "bench", address: `127.0.0.1:${port}`, serverId });
const handle = belay.handler((_request, response) => {
  response.end("ok\n");
});
belay.drainOnSignal(() => process.exit(0));
createServer(handle).listen(Number(port), "127.0.0.1");
