import { isKey } from "@belay/model";
import { MintOutcome, ResolveOutcome } from "@belay/protocol";
import type { FrameOf, InitOf } from "../frame-init.ts";
import type { Core } from "./core.ts";
import { createShard, dropRow, give, isOrphanClear, place, serverState, shardState } from "./shards.ts";
import type { Peer, Service, Shard } from "./state.ts";
import { SERVER_TABLE, SHARD_TABLE } from "./transitions.ts";

type Resolve = FrameOf<"resolve">;
type Mint = FrameOf<"mint">;
type Reply = Omit<InitOf<"resolved">, "$typeName" | "requestId" | "service" | "key" | "revision">;

/** How long a resolve waits here for the proxies to be clear of an ended owner, before NOT_YET. */
const CLEAR_WAIT_MS = 500;
const RETRY_MS = 100;
const RETRY_MS_MAX = 1000;

/** A1: the live owner, or a placement, answered after its commit. */
export function resolve(core: Core, peer: Peer, frame: Resolve): void {
  if (!core.peers.has(peer.id)) return;
  const service = core.services.get(frame.service);
  if (service === undefined || service.row.removed) {
    answer(core, peer, frame, { outcome: ResolveOutcome.SERVICE_UNKNOWN, retryAfterMs: RETRY_MS_MAX });
    return;
  }
  const shard = service.shards.get(frame.key);
  if (shard !== undefined) shard.touchedAt = core.now();
  if (frame.minRevision > core.revision) {
    // R1: a server has seen a commit whose answers are still on their way here.
    answer(core, peer, frame, { outcome: ResolveOutcome.NOT_YET, retryAfterMs: RETRY_MS });
    return;
  }
  switch (SHARD_TABLE[shardState(core, shard)].resolve) {
    case "answer":
    case "answer-moving":
      core.answer(() => answerCurrent(core, peer, frame, false));
      return;
    case "place":
    case "place-again":
      placeFor(core, peer, ...[frame, service, shard] as const);
      return;
  }
}

function placeFor(
  core: Core,
  peer: Peer,
  ...[frame, service, shard]: readonly [Resolve, Service, Shard | undefined]
): void {
  if (shard !== undefined && !isOrphanClear(core, shard)) return awaitClear(core, peer, frame, shard);
  if (service.row.minted) return answerUnknownKey(core, peer, frame, shard);
  const heldMs = core.freeHoldUntil - core.now();
  if (heldMs > 0) return answer(core, peer, frame, notYet(heldMs));
  if (shard === undefined && !isKey(frame.key)) {
    return core.refuse(peer, {
      code: "bad-key",
      message: "the key to resolve is not 1-256 bytes of UTF-8 without control characters",
      requestId: frame.requestId,
    });
  }
  const choice = place(core, { service, key: frame.key, zone: frame.zone });
  switch (choice.type) {
    case "server": {
      give(core, shard ?? createShard(core, service, frame.key), choice.server);
      core.counters.placements += 1;
      return core.answer(() => answerCurrent(core, peer, frame, true));
    }
    // A3: nothing is written.
    case "no-server":
      return answer(core, peer, frame, {
        outcome: ResolveOutcome.NO_SERVER,
        retryAfterMs: RETRY_MS_MAX,
      });
    case "full":
      return answer(core, peer, frame, { outcome: ResolveOutcome.FULL, retryAfterMs: RETRY_MS_MAX });
    case "not-yet":
      return answer(core, peer, frame, notYet(choice.retryAfterMs));
  }
}

const notYet = (waitMs: number): Reply => ({
  outcome: ResolveOutcome.NOT_YET,
  retryAfterMs: Math.ceil(Math.min(Math.max(waitMs, 1), RETRY_MS_MAX)),
});

/** M4: some proxy may still have a request open to the owner that has ended. */
function awaitClear(core: Core, peer: Peer, frame: Resolve, ...[shard]: [Shard]): void {
  const ended = core.ended.get(shard.owner);
  if (ended === undefined || core.pendingResolves >= core.limits.pendingResolves) {
    return answer(core, peer, frame, notYet(core.quietFrom(shard.service) - core.now()));
  }
  let waiting = true;
  core.pendingResolves += 1;
  const resume = (): void => {
    if (!waiting) return;
    waiting = false;
    core.pendingResolves -= 1;
    const until = core.ended.has(shard.owner) ? RETRY_MS : 0;
    if (until > 0) answer(core, peer, frame, notYet(until));
    else resolve(core, peer, frame);
  };
  ended.waiting.push(resume);
  return core.due.add(core.now() + CLEAR_WAIT_MS, resume);
}

/** A7: a minted shard is never placed; what is left of a gone owner's goes. */
function answerUnknownKey(
  core: Core,
  peer: Peer,
  frame: Resolve,
  ...[orphan]: [Shard | undefined]
): void {
  if (orphan !== undefined) dropRow(core, orphan);
  answer(core, peer, frame, { outcome: ResolveOutcome.UNKNOWN_KEY });
}

function answer(core: Core, peer: Peer, frame: Resolve, ...[reply]: [Reply]): void {
  core.answer(() => send(core, peer, frame, reply));
}

function send(core: Core, peer: Peer, frame: Resolve, ...[reply]: [Reply]): void {
  core.send(peer, {
    case: "resolved",
    value: {
      requestId: frame.requestId,
      service: frame.service,
      key: frame.key,
      revision: core.revision,
      ...reply,
    },
  });
}

/** T2: what is committed now; asked again if the same commit has ended the owner. */
function answerCurrent(core: Core, peer: Peer, frame: Resolve, ...[placed]: [boolean]): void {
  const shard = core.services.get(frame.service)?.shards.get(frame.key);
  const state = shardState(core, shard);
  if (shard === undefined || state === "free" || state === "orphaned") {
    core.tasks.push(() => resolve(core, peer, frame));
    return;
  }
  const owner = { incarnation: shard.owner, epoch: shard.epoch };
  if (state === "owned") {
    send(core, peer, frame, { outcome: ResolveOutcome.OWNER, ...owner, placed });
  } else {
    send(core, peer, frame, { outcome: ResolveOutcome.MOVING, ...owner });
  }
}

/** A7: the claim of a key that a server made. */
export function mint(core: Core, peer: Peer, frame: Mint): void {
  const service = core.services.get(frame.service);
  if (service === undefined || !service.row.minted) {
    return answerMint(core, peer, frame, MintOutcome.SERVICE_UNKNOWN);
  }
  const server = core.servers.get(frame.incarnation);
  if (server === undefined || server.service !== service) {
    return answerMint(core, peer, frame, MintOutcome.SERVER_GONE);
  }
  if (!isKey(frame.key)) {
    return core.refuse(peer, {
      code: "bad-key",
      message: "the minted key is not 1-256 bytes of UTF-8 without control characters",
      requestId: frame.requestId,
    });
  }
  const shard = service.shards.get(frame.key);
  switch (SHARD_TABLE[shardState(core, shard)].mint) {
    case "compare":
      break;
    case "claim-again":
      if (shard !== undefined && isOrphanClear(core, shard)) give(core, shard, server);
      break;
    case "claim":
      if (core.now() >= core.freeHoldUntil) give(core, createShard(core, service, frame.key), server);
      break;
  }
  return core.answer(() => answerMinted(core, peer, frame));
}

function answerMinted(core: Core, peer: Peer, frame: Mint): void {
  const server = core.servers.get(frame.incarnation);
  if (SERVER_TABLE[serverState(server)].renew === "tell-expired") {
    return sendMinted(core, peer, frame, { outcome: MintOutcome.SERVER_GONE });
  }
  const shard = core.services.get(frame.service)?.shards.get(frame.key);
  const isSame = shard?.owner === frame.incarnation;
  const outcome = isSame ? MintOutcome.OK : MintOutcome.CONFLICT;
  return sendMinted(core, peer, frame, { outcome, epoch: shard?.epoch ?? 0n });
}

function answerMint(core: Core, peer: Peer, frame: Mint, ...[outcome]: [MintOutcome]): void {
  core.answer(() => sendMinted(core, peer, frame, { outcome }));
}

function sendMinted(
  core: Core,
  peer: Peer,
  frame: Mint,
  ...[reply]: [{ readonly outcome: MintOutcome; readonly epoch?: bigint }]
): void {
  const { requestId, service, key } = frame;
  core.send(peer, {
    case: "minted",
    value: { requestId, service, key, revision: core.revision, ...reply },
  });
}
