import { After } from "@belay/protocol";
import type { TombstoneRow } from "../store.ts";
import type { Core } from "./core.ts";
import { takeRelease } from "./moves.ts";
import { endedEntry } from "./rows.ts";
import { shardState } from "./shards.ts";
import type { Server, Service } from "./state.ts";
import { SHARD_TABLE } from "./transitions.ts";

/**
 * Ends an incarnation in one entry (M1), whatever it owned: its rows stay and are placed again when
 * resolved. Shards on the move go on at once, for requests are parked on them.
 */
export function endServer(core: Core, server: Server, after: After): void {
  const { service, row } = server;
  core.servers.delete(row.incarnation);
  service.servers.delete(row.serverId);
  core.staging.delete({ table: "server", incarnation: row.incarnation });
  core.staging.grants.delete(server);
  core.staging.progress.delete(server);
  if (server.peer !== undefined) server.peer.server = undefined;
  const tombstone: TombstoneRow = {
    table: "tombstone",
    service: service.row.name,
    serverId: row.serverId,
    incarnation: row.incarnation,
    after,
    clear: service.row.guarded,
  };
  putTombstone(core, service, tombstone);
  core.staging.publish(endedEntry(tombstone));
  if (!service.row.guarded) watchEnd(core, server, tombstone);
  for (const shard of Array.from(server.moving)) {
    const action = SHARD_TABLE[shardState(core, shard)].ownerEnded;
    if (action === "take") takeRelease(core, shard, after);
  }
  server.moving.clear();
}

/** M4 and S7 for an unguarded one: shards and address are free when every proxy is clear of it. */
function watchEnd(core: Core, server: Server, tombstone: TombstoneRow): void {
  const { service } = server;
  const { incarnation } = tombstone;
  const clearance = core.watch({
    service,
    revision: core.staging.revision,
    incarnation,
    shard: undefined,
    quietFrom: core.quietFrom(service),
    onDropped: () => undefined,
    onClear: () => {
      const ended = core.ended.get(incarnation);
      core.ended.delete(incarnation);
      core.clearances.delete(clearance);
      // Kept, so that a restart owes no waiting for it.
      if (service.tombstones.get(tombstone.serverId)?.incarnation === incarnation) {
        putTombstone(core, service, { ...tombstone, clear: true });
      }
      for (const resume of ended?.waiting ?? []) core.later(resume);
    },
  });
  core.ended.set(incarnation, {
    address: server.row.address,
    row: tombstone,
    clearance,
    waiting: [],
  });
}

/** Bounded: the oldest gone id makes room, and is `server-unknown` from then on. */
function putTombstone(core: Core, service: Service, row: TombstoneRow): void {
  if (!service.tombstones.has(row.serverId)) {
    const [oldest] = service.tombstones.keys();
    if (oldest !== undefined && service.tombstones.size >= core.limits.tombstonesPerService) {
      dropTombstone(core, service, oldest);
    }
  }
  service.tombstones.set(row.serverId, row);
  core.staging.put(row);
}

/** Its id is registered again, or the oldest is forgotten. */
export function dropTombstone(core: Core, service: Service, serverId: string): void {
  const row = service.tombstones.get(serverId);
  if (row === undefined) return;
  service.tombstones.delete(serverId);
  core.cleared.delete(row.incarnation);
  core.staging.delete({ table: "tombstone", service: service.row.name, serverId });
}
