import type { FeedEntryInit } from "../frame-init.ts";
import type { ServerRow, ServiceRow, ShardRow, TombstoneRow } from "../store.ts";
import type { Shard } from "./state.ts";

export const shardRow = (shard: Shard): ShardRow => ({
  table: "shard",
  service: shard.service.row.name,
  key: shard.key,
  incarnation: shard.owner,
  epoch: shard.epoch,
  movingSince: shard.move?.since ?? 0n,
  moveTo: shard.move?.to ?? "",
});

export const serviceEntry = (row: ServiceRow, marginMs: number): FeedEntryInit => ({
  entry: {
    case: "service",
    value: {
      name: row.name,
      shardingGeneration: 1,
      leaseMs: row.leaseMs,
      feedLeaseMs: row.feedLeaseMs,
      marginMs,
      idleMs: row.idleMs,
      drainMs: row.drainMs,
      parkMs: row.parkMs,
      guarded: row.guarded,
      minted: row.minted,
    },
  },
});

export const serverEntry = (row: ServerRow): FeedEntryInit => ({
  entry: {
    case: "server",
    value: {
      service: row.service,
      serverId: row.serverId,
      incarnation: row.incarnation,
      address: row.address,
      zone: row.zone,
      state: row.state,
    },
  },
});

export const endedEntry = (row: TombstoneRow): FeedEntryInit => ({
  entry: {
    case: "serverEnded",
    value: {
      service: row.service,
      serverId: row.serverId,
      incarnation: row.incarnation,
      after: row.after,
    },
  },
});

/** Of a shard that is on the move. */
export const movingEntry = (shard: Shard): FeedEntryInit => ({
  entry: {
    case: "shardMoving",
    value: {
      service: shard.service.row.name,
      key: shard.key,
      epoch: shard.epoch,
      incarnation: shard.owner,
      drainMs: shard.service.row.drainMs,
    },
  },
});
