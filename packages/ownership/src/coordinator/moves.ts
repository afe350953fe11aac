import { After } from "@belay/protocol";
import type { ShardEpochInit } from "../frame-init.ts";
import type { ShardRow } from "../store.ts";
import type { Core } from "./core.ts";
import { movingEntry, shardRow } from "./rows.ts";
import { canTake, dropRow, give, place, publishFree, publishOwner, shardState } from "./shards.ts";
import type { Move, Server, Shard } from "./state.ts";
import { SHARD_TABLE } from "./transitions.ts";

/** M2: the revoke goes at the latest this long after *moving* is committed. */
const REVOKE_MS_MAX = 100;

export interface MoveWish {
  /** Server id; empty: by placement. */
  readonly to: string;
  readonly idle: boolean;
  /** The owner has given it up already. */
  readonly released: boolean;
}

/** M1: commits *moving* of an owned shard and its feed entry. */
export function beginMove(core: Core, shard: Shard, wish: MoveWish): void {
  core.counters.moves += 1;
  openMove(core, shard, {
    since: core.staging.revisionAbove(shard.epoch),
    to: wish.to,
    idle: wish.idle,
    phase: wish.released ? "released" : "moving",
    after: After.RELEASED,
  });
  core.staging.put(shardRow(shard));
  core.staging.publish(movingEntry(shard));
}

/** A move that an earlier term committed: the owner is asked again, the proxies are unknown (P6). */
export function resumeMove(core: Core, shard: Shard, row: ShardRow): void {
  const orphaned = !core.servers.has(shard.owner);
  openMove(core, shard, {
    since: row.movingSince,
    to: row.moveTo,
    idle: false,
    phase: orphaned ? "released" : "moving",
    after: After.EXPIRED,
  });
}

function openMove(core: Core, shard: Shard, facts: Omit<Move, "clearance">): void {
  const { service } = shard;
  const clearance = core.watch({
    service,
    revision: facts.since,
    incarnation: shard.owner,
    shard: { key: shard.key, epoch: shard.epoch },
    quietFrom: service.row.guarded ? undefined : core.quietFrom(service),
    onDropped: () => revokeDue(core, shard, move),
    onClear: () => cleared(core, shard, move),
  });
  const move: Move = { ...facts, clearance };
  shard.move = move;
  core.moving.add(shard);
  core.servers.get(shard.owner)?.moving.add(shard);
  core.due.add(core.now() + REVOKE_MS_MAX, () => revokeDue(core, shard, move));
}

/** M2: sends the revoke, once. */
function revokeDue(core: Core, shard: Shard, move: Move): void {
  if (shard.move !== move) return;
  if (SHARD_TABLE[shardState(core, shard)].revokeDue === "ignore") return;
  move.phase = "revoked";
  const server = core.servers.get(shard.owner);
  if (server !== undefined) core.answer(() => sendRevokes(core, server, [shard]));
}

/** Also after Resume: all that are pending. */
export function sendRevokes(core: Core, server: Server, shards: Iterable<Shard>): void {
  const pending: ShardEpochInit[] = [];
  for (const shard of shards) {
    const { move } = shard;
    if (move?.phase === "revoked" && shard.owner === server.row.incarnation) {
      pending.push({ key: shard.key, epoch: shard.epoch });
    }
  }
  for (let start = 0; start < pending.length; start += core.limits.entriesPerBatch) {
    core.send(server.peer, {
      case: "revoke",
      value: {
        incarnation: server.row.incarnation,
        shards: pending.slice(start, start + core.limits.entriesPerBatch),
        drainMs: server.service.row.drainMs,
      },
    });
  }
}

/** M3: a release of one shard by its server; acknowledged when the commit that takes it is durable. */
export function release(core: Core, server: Server, released: ShardEpochInit): void {
  const shard = server.service.shards.get(released.key);
  const isCurrent = shard?.owner === server.row.incarnation && shard.epoch === released.epoch;
  const action = isCurrent ? SHARD_TABLE[shardState(core, shard)].release : "acknowledge";
  switch (action) {
    case "acknowledge":
      acknowledge(core, server, released);
      return;
    case "begin-released":
      if (shard !== undefined) releasedUnasked(core, server, shard);
      return;
    case "take":
      if (shard?.move !== undefined) takeRelease(core, shard, After.RELEASED);
      return;
    case "ignore":
      return;
  }
}

/** A5: the owner gave it up for being idle. Nobody has to get it. */
function releasedUnasked(core: Core, server: Server, shard: Shard): void {
  const released = { key: shard.key, epoch: shard.epoch };
  if (core.entriesFull) {
    core.later(() => release(core, server, released));
    return;
  }
  if (!shard.service.row.guarded) {
    // The row goes only when no proxy believes in it any more.
    beginMove(core, shard, { to: "", idle: true, released: true });
    return;
  }
  publishFree(core, shard, After.RELEASED);
  dropRow(core, shard);
  acknowledge(core, server, released);
}

/** The owner has released, or has ended (S3). */
export function takeRelease(core: Core, shard: Shard, after: After): void {
  const { move } = shard;
  if (move === undefined) return;
  move.phase = "released";
  move.after = after;
  if (shard.service.row.guarded || move.clearance.clear) settle(core, shard, move);
}

function cleared(core: Core, shard: Shard, move: Move): void {
  if (move.clearance.needsQuiet) core.clearances.delete(move.clearance);
  if (shard.move !== move) return;
  if (SHARD_TABLE[shardState(core, shard)].clear === "settle") settle(core, shard, move);
}

/** M4: one commit takes the release and assigns, or frees if nobody can take it (M6). */
function settle(core: Core, shard: Shard, move: Move): void {
  if (shard.move !== move) return;
  if (core.entriesFull) {
    core.later(() => settle(core, shard, move));
    return;
  }
  const old = core.servers.get(shard.owner);
  const released = { key: shard.key, epoch: shard.epoch };
  const target = move.idle ? undefined : moveTarget(core, shard, move);
  if (target === undefined) {
    publishFree(core, shard, move.after);
    dropRow(core, shard);
  } else {
    give(core, shard, target);
    publishOwner(core, shard, move.after);
  }
  if (old !== undefined) acknowledge(core, old, released);
}

function moveTarget(core: Core, shard: Shard, move: Move): Server | undefined {
  const wished = shard.service.servers.get(move.to);
  const isWished = wished !== undefined && wished.row.incarnation !== shard.owner;
  if (isWished && canTake(wished)) return wished;
  // A minted shard is never placed (A7): it is moved only where somebody said to.
  if (shard.service.row.minted) return undefined;
  const wish = { service: shard.service, key: shard.key, zone: "", not: shard.owner };
  const choice = place(core, wish);
  return choice.type === "server" ? choice.server : undefined;
}

function acknowledge(core: Core, server: Server, released: ShardEpochInit): void {
  core.answer(() =>
    core.send(server.peer, {
      case: "releaseAck",
      value: { incarnation: server.row.incarnation, shards: [released] },
    }),
  );
}
