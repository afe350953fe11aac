import { Role } from "@belay/protocol";
import type { FeedEntryInit, FrameOf } from "../frame-init.ts";
import type { Core } from "./core.ts";
import type { PeerId } from "./event.ts";
import { connectProxy, disconnectProxy } from "./proxies.ts";
import { endedEntry, movingEntry, serverEntry, serviceEntry } from "./rows.ts";
import type { Peer } from "./state.ts";
import { extendLeases } from "./server-lease.ts";

const PROTOCOL_VERSION = 1;
const NAME_LENGTH_MAX = 128;
const PROCESS_ID_BYTES = 16;
/** A reader that has missed more batches gets a snapshot. */
const RESUME_BATCHES_MAX = 1_000;
const LOST_RANGES_MAX = 64;

export function connect(core: Core, id: PeerId): void {
  const peer: Peer = {
    id,
    role: Role.UNSPECIFIED,
    name: "",
    wentBack: false,
    following: false,
    server: undefined,
    proxy: undefined,
    closing: false,
  };
  core.peers.set(id, peer);
  if (core.peers.size <= core.limits.peers) return;
  core.refuse(peer, {
    code: "too-many-peers",
    message: `${core.limits.peers} peers are connected, the most that this coordinator takes.`,
    retryAfterMs: 1000,
    fatal: true,
  });
}

/** A lost connection ends nothing (P7, S3). */
export function disconnect(core: Core, id: PeerId): void {
  const peer = core.peers.get(id);
  if (peer === undefined) return;
  core.peers.delete(id);
  peer.closing = true;
  if (peer.server !== undefined) peer.server.peer = undefined;
  if (peer.proxy !== undefined) disconnectProxy(core, peer.proxy);
}

/** The first frame of a peer: answered by Welcome, then the feed for those who follow it. */
export function hello(core: Core, peer: Peer, frame: FrameOf<"hello">): void {
  const refusal = findRefusal(core, frame);
  if (refusal !== undefined) {
    core.refuse(peer, { ...refusal, fatal: true });
    return;
  }
  peer.role = frame.role;
  peer.name = frame.name;
  const isOurs = isSameBytes(frame.generation, core.generation);
  if (isOurs) judgeRevision(core, peer, frame.revision);
  if (frame.role === Role.PROXY) connectProxy(core, peer, frame);
  const resumeFrom = isOurs && !peer.wentBack ? frame.revision : undefined;
  core.answer(() => {
    sendWelcome(core, peer);
    if (frame.role === Role.PROXY || frame.role === Role.CONTROL_PLANE) {
      follow(core, peer, resumeFrom);
    }
  });
}

interface Refusal {
  readonly code: "unknown-version" | "role-unknown" | "bad-frame" | "deposed";
  readonly message: string;
}

function findRefusal(core: Core, frame: FrameOf<"hello">): Refusal | undefined {
  if (frame.protocolVersion !== PROTOCOL_VERSION) {
    return {
      code: "unknown-version",
      message: `this coordinator speaks protocol version ${PROTOCOL_VERSION}, not ${frame.protocolVersion}: run the same version of Belay on both sides.`,
    };
  }
  const roles: readonly number[] = [Role.PROXY, Role.SERVER, Role.GUARD, Role.CONTROL_PLANE];
  if (!roles.includes(frame.role)) {
    return {
      code: "role-unknown",
      message: `role ${frame.role} is not known to this coordinator.`,
    };
  }
  if (frame.name === "" || frame.name.length > NAME_LENGTH_MAX) {
    return { code: "bad-frame", message: `Hello.name must have 1-${NAME_LENGTH_MAX} characters.` };
  }
  if (frame.role === Role.PROXY && frame.processId.length !== PROCESS_ID_BYTES) {
    return {
      code: "bad-frame",
      message: `Hello.process_id of a proxy must be ${PROCESS_ID_BYTES} random bytes (P7).`,
    };
  }
  if (isSameBytes(frame.generation, core.generation) && frame.term > core.term) {
    return {
      code: "deposed",
      message: `this coordinator has term ${core.term}, and term ${frame.term} exists: connect to that one.`,
    };
  }
  return undefined;
}

/**
 * T4: has this peer seen a commit that the store has lost? Then nothing it holds is renewed, the
 * revision is lifted above it, and S4 and P6 start again.
 */
function judgeRevision(core: Core, peer: Peer, seen: bigint): void {
  if (core.lost.some(({ above, upTo }) => seen > above && seen <= upTo)) peer.wentBack = true;
  if (seen <= core.revision) return;
  peer.wentBack = true;
  core.counters.storeWentBack += 1;
  core.logger.error(
    { peer: peer.name, seen, revision: core.revision },
    "the store went back: a peer has seen a higher revision; waiting as after a restart",
  );
  if (core.lost.length >= LOST_RANGES_MAX) core.lost.shift();
  core.lost.push({ above: core.revision, upTo: seen });
  core.staging.liftAbove(seen);
  holdAgain(core);
  core.answer(() => holdAgain(core));
}

function holdAgain(core: Core): void {
  const now = core.now();
  core.loadedAt = now;
  extendLeases(core);
  core.freeHoldUntil = now + holdMs(core);
}

/** S4, P6: the longest that anybody may believe something that is not known here. */
export function holdMs(core: Core): number {
  const leases = Array.from(core.servers.values(), (server) => server.row.leaseMs);
  const feeds = Array.from(core.services.values(), ({ row }) => row.waitFeedLeaseMs);
  const longest = leases.concat(feeds).reduce((a, b) => Math.max(a, b), 0);
  return longest === 0 ? 0 : core.wait(longest);
}

/** What S4 and P6 still wait for; nothing is owed where no server and no row was found. */
export function holdLeftMs(core: Core): number {
  const until = Math.max(core.holdUntil, core.freeHoldUntil);
  return Math.max(0, until - core.now());
}

function sendWelcome(core: Core, peer: Peer): void {
  core.send(peer, {
    case: "welcome",
    value: {
      generation: core.generation,
      term: core.term,
      revision: core.revision,
      marginMs: core.config.marginMs,
      holdUntilMs: BigInt(Math.ceil(holdLeftMs(core))),
    },
  });
}

/** F1: goes on where the peer was, or with a snapshot. */
function follow(core: Core, peer: Peer, resumeFrom: bigint | undefined): void {
  if (peer.closing) return;
  // Its Hello may name a commit without entries: the chain is brought there, for all.
  if (resumeFrom !== undefined && resumeFrom > core.feed.last) advanceFeed(core);
  const missed =
    resumeFrom === undefined ? undefined : core.feed.since(resumeFrom, RESUME_BATCHES_MAX);
  if (resumeFrom === undefined || missed === undefined) sendSnapshot(core, peer);
  else resume(core, peer, { from: resumeFrom, missed });
  peer.following = true;
}

/** A batch without entries, so that `previous` of the next is the revision committed now. */
function advanceFeed(core: Core): void {
  const previous = core.feed.last;
  core.feed.append(core.revision, [], core.now());
  const peers = Array.from(core.peers.values()).filter((p) => p.following && !p.closing);
  const value = { previous, revision: core.revision, term: core.term, entries: [] };
  core.effects.push({
    type: "broadcast",
    peers: peers.map((p) => p.id),
    frame: { case: "feedBatch", value },
  });
}

interface Missed {
  readonly from: bigint;
  readonly missed: readonly {
    readonly revision: bigint;
    readonly entries: readonly FeedEntryInit[];
  }[];
}

function resume(core: Core, peer: Peer, { from, missed }: Missed): void {
  let previous = from;
  for (const { revision, entries } of missed) {
    const value = { previous, revision, term: core.term, entries: Array.from(entries) };
    core.send(peer, { case: "feedBatch", value });
    previous = revision;
  }
  // Said again: an acknowledgement may have been lost with the connection (P3).
  sendParts(core, peer, { previous, snapshot: false, entries: pendingEntries(core) });
  if (peer.proxy !== undefined) peer.proxy.snapshotRevision = 0n;
}

function sendSnapshot(core: Core, peer: Peer): void {
  const entries: FeedEntryInit[] = [];
  for (const service of core.services.values()) {
    entries.push(serviceEntry(service.row, core.config.marginMs));
    for (const tombstone of service.tombstones.values()) entries.push(endedEntry(tombstone));
    for (const server of service.servers.values()) entries.push(serverEntry(server.row));
  }
  entries.push(...pendingEntries(core));
  sendParts(core, peer, { previous: 0n, snapshot: true, entries });
  if (peer.proxy === undefined) return;
  peer.proxy.snapshotRevision = core.feed.last;
}

/** Unguarded moves and ends that still wait for acknowledgements. */
function pendingEntries(core: Core): FeedEntryInit[] {
  const entries: FeedEntryInit[] = [];
  for (const shard of core.moving) {
    if (!shard.service.row.guarded) entries.push(movingEntry(shard));
  }
  for (const { row } of core.ended.values()) entries.push(endedEntry(row));
  return entries;
}

interface Parts {
  readonly previous: bigint;
  readonly snapshot: boolean;
  readonly entries: FeedEntryInit[];
}

/** In frames of bounded size; the last is `complete`. */
function sendParts(core: Core, peer: Peer, { previous, snapshot, entries }: Parts): void {
  const partEntries = core.limits.entriesPerBatch;
  const revision = core.feed.last;
  for (let start = 0; start === 0 || start < entries.length; start += partEntries) {
    const part = entries.slice(start, start + partEntries);
    const complete = start + partEntries >= entries.length;
    const value = { previous, revision, term: core.term, entries: part, snapshot, complete };
    core.send(peer, { case: "feedBatch", value });
    if (!snapshot) previous = revision;
  }
}

function isSameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
