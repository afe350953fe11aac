import { isKey } from "@belay/model";
import { ResolveOutcome } from "@belay/protocol";
import type { FrameOf, InitOf } from "../frame-init.ts";
import type { Core } from "./core.ts";
import { createShard, dropRow, give, isOrphanClear, place, shardState } from "./shards.ts";
import type { Peer, Service, Shard } from "./state.ts";
import { SHARD_TABLE } from "./transitions.ts";

/** Who asks for what; kept while it waits. */
interface Call {
  readonly core: Core;
  readonly peer: Peer;
  readonly frame: FrameOf<"resolve">;
}

type Reply = Omit<InitOf<"resolved">, "$typeName" | "requestId" | "service" | "key" | "revision">;

/** How long a resolve waits here for the proxies to be clear of an ended owner, before NOT_YET. */
const CLEAR_WAIT_MS = 500;
const RETRY_MS = 100;
const RETRY_MS_MAX = 1000;

/** A1: the live owner, or a placement, answered after its commit. */
export function resolve(core: Core, peer: Peer, frame: FrameOf<"resolve">): void {
  run({ core, peer, frame });
}

function run(call: Call): void {
  const { core, peer, frame } = call;
  if (!core.peers.has(peer.id)) return;
  const service = core.services.get(frame.service);
  if (service === undefined || service.row.removed) {
    answer(call, { outcome: ResolveOutcome.SERVICE_UNKNOWN, retryAfterMs: RETRY_MS_MAX });
    return;
  }
  const shard = service.shards.get(frame.key);
  if (shard !== undefined) shard.touchedAt = core.now();
  if (frame.minRevision > core.revision) {
    // R1: a server has seen a commit whose answers are still on their way.
    answer(call, notYet(RETRY_MS));
    return;
  }
  switch (SHARD_TABLE[shardState(core, shard)].resolve) {
    case "answer":
    case "answer-moving":
      core.answer(() => answerCurrent(call, false));
      return;
    case "place":
      placeFree(call, service);
      return;
    case "place-again":
      if (shard !== undefined) placeOrphan(call, shard);
      return;
  }
}

/** No row: no proxy believes anything about it, unless the store went back (T4). */
function placeFree(call: Call, service: Service): void {
  const { core, frame } = call;
  if (service.row.minted) return answer(call, { outcome: ResolveOutcome.UNKNOWN_KEY });
  const heldMs = core.freeHoldUntil - core.now();
  if (heldMs > 0) return answer(call, notYet(heldMs));
  if (isKey(frame.key)) return placeWhere(call, service, undefined);
  return core.refuse(call.peer, {
    code: "bad-key",
    message: "the key to resolve is not 1-256 bytes of UTF-8 without control characters",
    requestId: frame.requestId,
  });
}

/** The row of an ended owner: M4's condition for that end comes first. */
function placeOrphan(call: Call, shard: Shard): void {
  const { core } = call;
  if (!isOrphanClear(core, shard)) return awaitClear(call, shard);
  if (!shard.service.row.minted) return placeWhere(call, shard.service, shard);
  // A7: a minted shard is never placed; what a gone owner left of it goes.
  dropRow(core, shard);
  return answer(call, { outcome: ResolveOutcome.UNKNOWN_KEY });
}

function placeWhere(call: Call, service: Service, orphan: Shard | undefined): void {
  const { core, frame } = call;
  const choice = place(core, { service, key: frame.key, zone: frame.zone });
  switch (choice.type) {
    case "server":
      give(core, orphan ?? createShard(core, service, frame.key), choice.server);
      core.counters.placements += 1;
      return core.answer(() => answerCurrent(call, true));
    // A3: nothing is written.
    case "no-server":
      return answer(call, { outcome: ResolveOutcome.NO_SERVER, retryAfterMs: RETRY_MS_MAX });
    case "full":
      return answer(call, { outcome: ResolveOutcome.FULL, retryAfterMs: RETRY_MS_MAX });
    case "not-yet":
      return answer(call, notYet(choice.retryAfterMs));
  }
}

const notYet = (waitMs: number): Reply => ({
  outcome: ResolveOutcome.NOT_YET,
  retryAfterMs: Math.ceil(Math.min(Math.max(waitMs, 1), RETRY_MS_MAX)),
});

/** M4: some proxy may still have a request open to the owner that has ended. */
function awaitClear(call: Call, shard: Shard): void {
  const { core } = call;
  const ended = core.ended.get(shard.owner);
  if (ended === undefined || core.pendingResolves >= core.limits.pendingResolves) {
    return answer(call, notYet(core.quietFrom(shard.service) - core.now()));
  }
  let waiting = true;
  core.pendingResolves += 1;
  const resume = (): void => {
    if (!waiting) return;
    waiting = false;
    core.pendingResolves -= 1;
    if (core.ended.has(shard.owner)) answer(call, notYet(RETRY_MS));
    else run(call);
  };
  ended.waiting.push(resume);
  return core.due.add(core.now() + CLEAR_WAIT_MS, resume);
}

/** T2: what is committed now; asked again if the same commit has ended the owner. */
function answerCurrent(call: Call, placed: boolean): void {
  const { core, frame } = call;
  const shard = core.services.get(frame.service)?.shards.get(frame.key);
  const state = shardState(core, shard);
  if (shard === undefined || state === "free" || state === "orphaned") {
    core.tasks.push(() => run(call));
    return;
  }
  const owner = { incarnation: shard.owner, epoch: shard.epoch };
  if (state === "owned") send(call, { outcome: ResolveOutcome.OWNER, ...owner, placed });
  else send(call, { outcome: ResolveOutcome.MOVING, ...owner });
}

function answer(call: Call, reply: Reply): void {
  call.core.answer(() => send(call, reply));
}

function send({ core, peer, frame }: Call, reply: Reply): void {
  const { requestId, service, key } = frame;
  core.send(peer, {
    case: "resolved",
    value: { requestId, service, key, revision: core.revision, ...reply },
  });
}
