import type { FrameOf, ShardEpochInit } from "../frame-init.ts";
import type { HeldShard } from "./ledger.ts";
import type { SessionCore } from "./session-core.ts";

/** A grant, or a confirmation that it is mine (G2). Older than what is held or given up: nothing. */
export function hold(core: SessionCore, { key, epoch }: ShardEpochInit): void {
  if (!core.ledger.hold(key, epoch)) return;
  core.effects.push({ type: "granted", key, epoch });
}

/** M3: stops admitting, lets run what runs, then releases; what is not known is released at once. */
export function revoke(core: SessionCore, { shards, drainMs }: FrameOf<"revoke">): void {
  const ready: ShardEpochInit[] = [];
  for (const { key, epoch } of shards) {
    const held = core.ledger.held(key);
    if (held !== undefined && held.epoch > epoch) continue;
    if (held?.epoch !== epoch) {
      if (held !== undefined) core.cut(held.requests, "released");
      ready.push({ key, epoch });
    } else if (held.drainUntil === undefined) {
      core.ledger.startDraining(held, core.now() + drainMs);
      core.closeSockets(held);
      // Beside an unmodified server nothing is counted here: its proxies wait for quiet (M4).
      if (held.requests.size === 0) ready.push(held);
    }
  }
  core.giveUp(ready);
}

/** M3: the drain deadline cuts what still runs. */
export function cutOverdue(core: SessionCore): void {
  const now = core.now();
  for (const shard of Array.from(core.ledger.draining())) {
    if ((shard.drainUntil ?? now) <= now) core.cut(shard.requests, "drain-over");
  }
}

/** A5: released, unless something runs. */
export function answerIdle(core: SessionCore, { shards }: FrameOf<"askRelease">): void {
  const idle: HeldShard[] = [];
  const busy: ShardEpochInit[] = [];
  for (const { key, epoch } of shards) {
    const held = core.ledger.held(key);
    if (held === undefined || held.epoch !== epoch || held.drainUntil !== undefined) continue;
    if (held.requests.size > 0) busy.push({ key, epoch });
    else idle.push(held);
  }
  if (busy.length > 0) {
    core.send({ case: "busy", value: { incarnation: core.incarnation, shards: busy } });
  }
  core.giveUp(idle);
}
