import { After } from "@belay/protocol";
import type { ShardEpochInit } from "../frame-init.ts";
import type { Core } from "./core.ts";
import { takeIdle, trackIdle } from "./idle-buckets.ts";
import { dropRow, isOrphanClear, publishFree, shardState } from "./shards.ts";
import type { Server, Service, Shard } from "./state.ts";
import { SHARD_TABLE } from "./transitions.ts";

const LOOK_MS = 1000;
/** Shards looked at in one go; more wait for the next event. */
const LOOKED_AT_MAX = 5_000;
/** An owner that did not release and did not say busy is asked again after this part of idle. */
const ASK_AGAIN_PART = 4;

/** A5: asks the owners of shards that no resolve has touched for `idle` to release them. */
export function watchIdle(core: Core, service: Service): void {
  const looked = lookAtIdle(core, service);
  if (core.services.get(service.row.name) !== service) return;
  const nextMs = looked === LOOKED_AT_MAX ? 0 : LOOK_MS;
  core.due.add(core.now() + nextMs, () => watchIdle(core, service));
}

function lookAtIdle(core: Core, service: Service): number {
  const now = core.now();
  const asked = new Map<Server, ShardEpochInit[]>();
  const shards = takeIdle(service.idleBuckets, now, LOOKED_AT_MAX);
  for (const shard of shards) {
    if (service.shards.get(shard.key) !== shard) continue;
    const { idleMs } = service.row;
    if (shard.touchedAt + idleMs > now) {
      trackIdle(shard);
      continue;
    }
    trackIdle(shard, now + idleMs / ASK_AGAIN_PART);
    const action = SHARD_TABLE[shardState(core, shard)].idle;
    if (action === "forget") forget(core, shard);
    const owner = action === "ask-release" ? core.servers.get(shard.owner) : undefined;
    if (owner === undefined) continue;
    const list = asked.get(owner) ?? [];
    if (list.length === 0) asked.set(owner, list);
    list.push({ key: shard.key, epoch: shard.epoch });
  }
  for (const [server, list] of asked) ask(core, server, list);
  return shards.length;
}

/** The row of an owner that has ended, and that nobody asked for since. */
function forget(core: Core, shard: Shard): void {
  if (!isOrphanClear(core, shard) || core.entriesFull) return;
  publishFree(core, shard, After.EXPIRED);
  dropRow(core, shard);
}

function ask(core: Core, server: Server, shards: readonly ShardEpochInit[]): void {
  core.answer(() => {
    for (let start = 0; start < shards.length; start += core.limits.entriesPerBatch) {
      core.send(server.peer, {
        case: "askRelease",
        value: {
          incarnation: server.row.incarnation,
          shards: shards.slice(start, start + core.limits.entriesPerBatch),
        },
      });
    }
  });
}
