import { After, DeathProof } from "@belay/protocol";
import type { FrameOf } from "../frame-init.ts";
import type { Core } from "./core.ts";
import { beginDrain } from "./drain.ts";
import { release } from "./moves.ts";
import { attach, greet, isSameSecret, sendProgress } from "./register.ts";
import { endServer } from "./server-end.ts";
import { serverState, shardState } from "./shards.ts";
import type { Peer, Server } from "./state.ts";
import { SERVER_TABLE, SHARD_TABLE } from "./transitions.ts";

/** Renewals alone wait at most this long for a commit, where they need one (S1). */
const RENEWAL_COMMIT_MS = 200;

/** The incarnation of this session, if the frame speaks for it. */
function ownServer(peer: Peer, incarnation: bigint): Server | undefined {
  return peer.server?.row.incarnation === incarnation ? peer.server : undefined;
}

interface Expired {
  readonly incarnation: bigint;
  readonly reason: "unknown" | "wrong-secret";
}

function tellExpired(core: Core, peer: Peer, expired: Expired): void {
  core.answer(() => core.send(peer, { case: "serverExpired", value: expired }));
}

/** After a lost connection (S5, M3): the same incarnation, then what it has to give up. */
export function resume(core: Core, peer: Peer, frame: FrameOf<"resume">): void {
  const server = core.servers.get(frame.incarnation);
  const action = SERVER_TABLE[serverState(server)].resume;
  // T4: what this peer holds may come from commits that the store has lost.
  if (server === undefined || action === "tell-expired" || peer.wentBack) {
    return tellExpired(core, peer, { incarnation: frame.incarnation, reason: "unknown" });
  }
  if (!isSameSecret(server.row.secret, frame.secret)) {
    return tellExpired(core, peer, { incarnation: frame.incarnation, reason: "wrong-secret" });
  }
  attach(core, peer, server);
  return core.answer(() => greet(core, server, frame.requestId));
}

/** S1: decided in the order of arrival with S3's expiry, answered after that order is durable. */
export function renew(core: Core, peer: Peer, frame: FrameOf<"renewServerLease">): void {
  const server = ownServer(peer, frame.incarnation);
  const action = SERVER_TABLE[serverState(server)].renew;
  if (server === undefined || action === "tell-expired" || peer.wentBack) {
    return tellExpired(core, peer, { incarnation: frame.incarnation, reason: "unknown" });
  }
  server.load = frame.load;
  core.counters.renewals += 1;
  extendLease(core, server);
  const answer = (): void => {
    extendLease(core, server);
    core.send(server.peer, {
      case: "serverLease",
      value: { nonce: frame.nonce, incarnation: frame.incarnation, asOf: core.revision },
    });
  };
  if (core.config.storeExclusive) return core.answer(answer);
  core.renewals.push(answer);
  return core.due.add(core.now() + RENEWAL_COMMIT_MS, () => {
    if (core.renewals.length > 0) core.staging.want();
  });
}

function extendLease(core: Core, server: Server): void {
  server.leaseUntil = core.now() + core.wait(server.row.leaseMs);
}

/** M3 */
export function releaseShards(core: Core, peer: Peer, frame: FrameOf<"release">): void {
  const server = ownServer(peer, frame.incarnation);
  if (server === undefined)
    return tellExpired(core, peer, { incarnation: frame.incarnation, reason: "unknown" });
  for (const shard of frame.shards) release(core, server, shard);
  return undefined;
}

/** A5: the owner has work for them. */
export function busy(core: Core, peer: Peer, frame: FrameOf<"busy">): void {
  const server = ownServer(peer, frame.incarnation);
  for (const { key, epoch } of server === undefined ? [] : frame.shards) {
    const shard = server?.service.shards.get(key);
    if (shard?.owner !== frame.incarnation || shard.epoch !== epoch) continue;
    if (SHARD_TABLE[shardState(core, shard)].busy === "touch") shard.touchedAt = core.now();
  }
}

/** G2: by this incarnation and active, as committed. */
export function confirm(core: Core, peer: Peer, frame: FrameOf<"confirm">): void {
  const server = ownServer(peer, frame.incarnation);
  if (server === undefined)
    return tellExpired(core, peer, { incarnation: frame.incarnation, reason: "unknown" });
  return core.answer(() => {
    const shard = server.service.shards.get(frame.key);
    const owned = shard?.owner === frame.incarnation && shardState(core, shard) === "owned";
    core.send(server.peer, {
      case: "confirmed",
      value: {
        requestId: frame.requestId,
        incarnation: frame.incarnation,
        key: frame.key,
        owned,
        epoch: shard?.epoch ?? 0n,
        asOf: core.revision,
      },
    });
  });
}

/** M6 */
export function startDrain(core: Core, peer: Peer, frame: FrameOf<"startDrain">): void {
  const server = ownServer(peer, frame.incarnation);
  if (server === undefined)
    return tellExpired(core, peer, { incarnation: frame.incarnation, reason: "unknown" });
  beginDrain(core, server);
  return core.answer(() => sendProgress(core, server));
}

/** Leave, and Died with a proof (S8): a release of everything. */
export function end(core: Core, peer: Peer, frame: FrameOf<"leave"> | FrameOf<"died">): void {
  const server = core.servers.get(frame.incarnation);
  const tellEnded = (): void =>
    core.send(peer, { case: "serverEnded", value: { incarnation: frame.incarnation } });
  if (server === undefined || SERVER_TABLE[serverState(server)].end === "tell-ended") {
    return core.answer(tellEnded);
  }
  if (!isSameSecret(server.row.secret, frame.secret)) {
    return core.refuse(peer, {
      code: "wrong-secret",
      message: `the secret is not that of incarnation ${frame.incarnation}: only the process that registered it may end it.`,
    });
  }
  if ("proof" in frame && frame.proof !== DeathProof.SUBREAPER) {
    return core.refuse(peer, {
      code: "bad-frame",
      message: "Died must prove that no process is left (proof); without it the lease counts (S3).",
    });
  }
  const owner = server.peer;
  core.logger.info(
    { service: server.row.service, server: server.row.serverId, incarnation: frame.incarnation },
    "server ended",
  );
  endServer(core, server, After.RELEASED);
  return core.answer(() => {
    tellEnded();
    if (owner === undefined || owner === peer) return;
    core.send(owner, { case: "serverEnded", value: { incarnation: frame.incarnation } });
  });
}
