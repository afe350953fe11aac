import { After } from "@belay/protocol";
import type { Core } from "./core.ts";
import { endServer } from "./server-end.ts";
import { serverState } from "./shards.ts";
import type { Server } from "./state.ts";
import { SERVER_TABLE } from "./transitions.ts";

/** S4: from now on every incarnation has W(its L) again. Waiting longer is always safe. */
export function extendLeases(core: Core): void {
  const now = core.now();
  for (const server of core.servers.values()) {
    server.leaseUntil = Math.max(server.leaseUntil, now + core.wait(server.row.leaseMs));
  }
}

/** S3: expires the incarnation W(L) after its last renewal, by a commit. */
export function watchLease(core: Core, server: Server): void {
  core.due.add(server.leaseUntil, () => {
    const current = core.servers.get(server.row.incarnation);
    if (SERVER_TABLE[serverState(current)].leaseOver === "ignore") return;
    if (server.leaseUntil > core.now()) {
      watchLease(core, server);
      return;
    }
    core.counters.expiries += 1;
    const { peer, row } = server;
    core.logger.warn(
      { service: row.service, server: row.serverId, incarnation: row.incarnation },
      "server expired: it has not renewed its lease",
    );
    endServer(core, server, After.EXPIRED);
    core.answer(() =>
      core.send(peer, {
        case: "serverExpired",
        value: { incarnation: row.incarnation, reason: "expired" },
      }),
    );
  });
}
