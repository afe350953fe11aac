import { ServerState } from "@belay/protocol";
import type { Row, ServerRow, ShardRow } from "../store.ts";
import type { Core } from "./core.ts";
import { continueDrain } from "./drain.ts";
import { trackIdle } from "./idle-buckets.ts";
import { resumeMove } from "./moves.ts";
import { holdMs } from "./peers.ts";
import { watchLease } from "./server-lease.ts";
import { addService, lowerLater, removeLater } from "./services.ts";
import type { Server, Shard } from "./state.ts";

interface Sorted {
  readonly servers: ServerRow[];
  readonly shards: ShardRow[];
}

/**
 * Brings the rows of a take-over into memory (T1). From the end of it S4 and P6 count; everything
 * counts as touched (A5).
 */
export function loadRows(core: Core, rows: Iterable<Row>): void {
  const sorted: Sorted = { servers: [], shards: [] };
  const tombstones = [];
  for (const row of rows) {
    switch (row.table) {
      case "service":
        addService(core, row);
        break;
      case "tombstone":
        tombstones.push(row);
        break;
      case "server":
        sorted.servers.push(row);
        break;
      case "shard":
        sorted.shards.push(row);
        break;
    }
  }
  for (const row of tombstones) {
    core.services.get(row.service)?.tombstones.set(row.serverId, row);
    if (row.clear) core.cleared.add(row.incarnation);
  }
  // P6: of a store that was never used before, no proxy has heard.
  if (core.wasUsed) core.loadedAt = core.now();
  for (const row of sorted.servers) loadServer(core, row);
  const moving: [Shard, ShardRow][] = [];
  for (const row of sorted.shards) {
    const shard = loadShard(core, row);
    if (shard !== undefined && row.movingSince !== 0n) moving.push([shard, row]);
  }
  // Clearances are kept in the order of their revisions.
  moving.sort(([, a], [, b]) => (a.movingSince < b.movingSince ? -1 : 1));
  for (const [shard, row] of moving) resumeMove(core, shard, row);
  for (const server of core.servers.values()) {
    if (server.row.state === ServerState.DRAINING) continueDrain(core, server);
  }
  for (const service of core.services.values()) {
    if (service.row.waitFeedLeaseMs > service.row.feedLeaseMs) lowerLater(core, service);
    if (service.row.removed) removeLater(core, service);
  }
  // A row whose owner has ended, with every proxy clear of it, holds up nobody.
  const isOwed = ({ incarnation }: ShardRow): boolean => !core.cleared.has(incarnation);
  const owes = sorted.servers.length > 0 || sorted.shards.some(isOwed);
  core.holdUntil = owes ? core.now() + holdMs(core) : Number.NEGATIVE_INFINITY;
}

function loadServer(core: Core, row: ServerRow): void {
  const service = core.services.get(row.service);
  if (service === undefined) return;
  const now = core.now();
  const server: Server = {
    service,
    row,
    peer: undefined,
    // S4
    leaseUntil: now + core.wait(row.leaseMs),
    registeredAt: now,
    shards: new Set(),
    moving: new Set(),
    load: undefined,
    reachable: false,
    reachableVersion: -1,
    drainList: undefined,
  };
  core.servers.set(row.incarnation, server);
  service.servers.set(row.serverId, server);
  watchLease(core, server);
}

function loadShard(core: Core, row: ShardRow): Shard | undefined {
  const service = core.services.get(row.service);
  if (service === undefined) return undefined;
  const shard: Shard = {
    service,
    key: row.key,
    owner: row.incarnation,
    epoch: row.epoch,
    touchedAt: core.now(),
    move: undefined,
  };
  service.shards.set(row.key, shard);
  core.servers.get(row.incarnation)?.shards.add(shard);
  trackIdle(shard);
  return shard;
}
