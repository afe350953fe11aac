import { After, ServerState } from "@belay/protocol";
import { choose } from "../placement/choose.ts";
import type { Core } from "./core.ts";
import { trackIdle } from "./idle-buckets.ts";
import { shardRow } from "./rows.ts";
import type { Server, Service, Shard } from "./state.ts";
import {
  SERVER_TABLE,
  type ServerState as ServerTableState,
  type ShardState,
} from "./transitions.ts";

/** A4: a server that some proxy cannot reach is placed on all the same after this long. */
const HOSTS_WAIT_MS = 2000;

export function shardState(core: Core, shard: Shard | undefined): ShardState {
  if (shard === undefined) return "free";
  if (shard.move !== undefined) return shard.move.phase;
  return core.servers.has(shard.owner) ? "owned" : "orphaned";
}

export function serverState(server: Server | undefined): ServerTableState {
  if (server === undefined) return "absent";
  return server.row.state === ServerState.DRAINING ? "draining" : "active";
}

/** M4: what an ended owner left may be given away. Guarded services need no proxy for it. */
export function isOrphanClear(core: Core, shard: Shard): boolean {
  if (shard.service.row.guarded || core.cleared.has(shard.owner)) return true;
  return !core.ended.has(shard.owner) && core.now() >= core.quietFrom(shard.service);
}

/** Assigns in the staged batch (A1, M4). The grant goes out with its commit. */
export function give(core: Core, shard: Shard, server: Server): void {
  leaveOwner(core, shard);
  shard.epoch = core.staging.revisionAbove(shard.epoch);
  shard.owner = server.row.incarnation;
  server.shards.add(shard);
  core.staging.put(shardRow(shard));
  const grants = core.staging.grants.get(server) ?? [];
  if (grants.length === 0) core.staging.grants.set(server, grants);
  grants.push({ key: shard.key, epoch: shard.epoch });
}

/** A new shard's object; it has an owner before the event ends. */
export function createShard(core: Core, service: Service, key: string): Shard {
  const shard: Shard = {
    service,
    key,
    owner: 0n,
    epoch: 0n,
    touchedAt: core.now(),
    move: undefined,
  };
  service.shards.set(key, shard);
  trackIdle(shard);
  return shard;
}

/** Deletes the row. */
export function dropRow(core: Core, shard: Shard): void {
  leaveOwner(core, shard);
  shard.service.shards.delete(shard.key);
  core.staging.delete({ table: "shard", service: shard.service.row.name, key: shard.key });
}

function leaveOwner(core: Core, shard: Shard): void {
  if (shard.move !== undefined) core.clearances.delete(shard.move.clearance);
  shard.move = undefined;
  core.moving.delete(shard);
  const owner = core.servers.get(shard.owner);
  if (owner === undefined) return;
  owner.shards.delete(shard);
  owner.moving.delete(shard);
  if (owner.drainList !== undefined) core.staging.progress.add(owner);
}

export type Choice =
  | { readonly type: "server"; readonly server: Server }
  | { readonly type: "no-server" }
  | { readonly type: "full" }
  /** A server is there but cannot take it yet. */
  | { readonly type: "not-yet"; readonly retryAfterMs: number };

export interface PlaceWish {
  readonly service: Service;
  readonly key: string;
  readonly zone: string;
  readonly not?: bigint;
}

/** A2, A3, A4. */
export function place(core: Core, wish: PlaceWish): Choice {
  const { service } = wish;
  const reachable: Server[] = [];
  const registeredLong: Server[] = [];
  let active = 0;
  let room = 0;
  for (const server of service.servers.values()) {
    if (SERVER_TABLE[serverState(server)].place === "refuse") continue;
    if (server.row.incarnation === wish.not) continue;
    active += 1;
    if (server.row.capacity > 0 && server.shards.size >= server.row.capacity) continue;
    room += 1;
    // Without its session it cannot be told; its lease may still live, so it is not gone (S3).
    if (server.peer === undefined) continue;
    if (isReachable(core, server)) reachable.push(server);
    else if (core.now() - server.registeredAt >= HOSTS_WAIT_MS) registeredLong.push(server);
  }
  const candidates = reachable.length > 0 ? reachable : registeredLong;
  const server = choose(service.row.placement, candidates, wish);
  if (server !== undefined) return { type: "server", server };
  if (active === 0) return { type: "no-server" };
  return room === 0 ? { type: "full" } : { type: "not-yet", retryAfterMs: 100 };
}

/** True if the server may be given a shard that was asked to go there. */
export function canTake(server: Server): boolean {
  if (SERVER_TABLE[serverState(server)].place === "refuse" || server.peer === undefined)
    return false;
  return server.row.capacity === 0 || server.shards.size < server.row.capacity;
}

/**
 * A4: every connected proxy that has reported the service's hosts has this address. A proxy that
 * never reported holds nothing that it needs; one without a connection can learn no answer.
 */
function isReachable(core: Core, server: Server): boolean {
  const { service } = server;
  if (server.reachableVersion === service.hostsVersion) return server.reachable;
  server.reachableVersion = service.hostsVersion;
  server.reachable = true;
  for (const proxy of core.proxies.values()) {
    const hosts = proxy.peer === undefined ? undefined : proxy.hosts.get(service.row.name);
    if (hosts !== undefined && !hosts.has(server.row.address)) server.reachable = false;
  }
  return server.reachable;
}

/** Publishes the owner after a move (a first placement is told only to who asked). */
export function publishOwner(core: Core, shard: Shard, after: After): void {
  core.staging.publish({
    entry: {
      case: "shardOwner",
      value: {
        service: shard.service.row.name,
        key: shard.key,
        epoch: shard.epoch,
        incarnation: shard.owner,
        after,
      },
    },
  });
}

/** Publishes that nobody has it any more; the next resolve places it. */
export function publishFree(core: Core, shard: Shard, after: After): void {
  core.staging.publish({
    entry: {
      case: "shardFree",
      value: { service: shard.service.row.name, key: shard.key, epoch: shard.epoch, after },
    },
  });
}
