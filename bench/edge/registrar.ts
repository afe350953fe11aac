// Holds the leases of servers of the service `guarded` that run elsewhere. Arguments: their ports.
import { connect } from "@belay/server-sdk";

const ports = process.argv.slice(2);
await Promise.all(
  ports.map(async (port) =>
    connect({ service: "guarded", address: `127.0.0.1:${port}`, serverId: `guarded-${port}` }),
  ),
);
process.stdout.write("ready\n");
