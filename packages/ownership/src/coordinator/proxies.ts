import type { FrameOf } from "../frame-init.ts";
import type { Core } from "./core.ts";
import type { Peer, Proxy, Service } from "./state.ts";

const HOSTS_MAX = 20_000;

const hex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** P7: the process, known by its random id; a new connection of it takes the old one's place. */
export function connectProxy(core: Core, peer: Peer, hello: FrameOf<"hello">): Proxy {
  const id = hex(hello.processId);
  const known = core.proxies.get(id);
  const proxy: Proxy = known ?? {
    id,
    processId: hello.processId,
    name: hello.name,
    pool: hello.pool,
    software: hello.software,
    peer,
    renewedAt: undefined,
    dropped: 0n,
    snapshotRevision: 0n,
    heldRenewal: undefined,
    hosts: new Map(),
    load: undefined,
  };
  const old = proxy.peer;
  if (old !== undefined && old !== peer) {
    old.proxy = undefined;
    core.answer(() => core.close(old, "replaced by a newer connection of the same process"));
  }
  proxy.peer = peer;
  proxy.heldRenewal = undefined;
  peer.proxy = proxy;
  core.proxies.set(id, proxy);
  return proxy;
}

/** P7: a lost connection ends nothing; the record goes when it can believe nothing any more. */
export function disconnectProxy(core: Core, proxy: Proxy): void {
  proxy.peer = undefined;
  proxy.heldRenewal = undefined;
  forgetHosts(core, proxy);
  forgetLater(core, proxy);
}

function forgetLater(core: Core, proxy: Proxy): void {
  if (proxy.peer !== undefined || core.proxies.get(proxy.id) !== proxy) return;
  const until = Math.max(
    ...Array.from(core.services.values(), (s) => core.believesUntil(proxy, s)),
  );
  if (until > core.now()) core.due.add(until, () => forgetLater(core, proxy));
  else core.proxies.delete(proxy.id);
}

function forgetHosts(core: Core, proxy: Proxy): void {
  for (const name of proxy.hosts.keys()) changeHosts(core.services.get(name));
  proxy.hosts.clear();
}

function changeHosts(service: Service | undefined): void {
  if (service !== undefined) service.hostsVersion += 1;
}

/** P7: all its streams are closed. */
export function goodbye(core: Core, proxy: Proxy): void {
  forgetHosts(core, proxy);
  core.proxies.delete(proxy.id);
  for (const clearance of Array.from(core.clearances)) clearance.leave(proxy);
  if (proxy.peer !== undefined) proxy.peer.proxy = undefined;
  proxy.peer = undefined;
  proxy.renewedAt = undefined;
}

/** A4 */
export function reportHosts(core: Core, proxy: Proxy, frame: FrameOf<"hosts">): void {
  const service = core.services.get(frame.service);
  if (service === undefined) return;
  changeHosts(service);
  proxy.hosts.set(frame.service, new Set(frame.addresses.slice(0, HOSTS_MAX)));
}

/** P3: cumulative. */
export function acknowledge(core: Core, proxy: Proxy, dropped: bigint): void {
  // Above what was published means nothing: it must not count for entries to come.
  const known = dropped > core.feed.last ? core.feed.last : dropped;
  if (known > proxy.dropped) {
    proxy.dropped = known;
    for (const clearance of core.clearances) {
      // Oldest first: what comes after is not acknowledged either.
      if (clearance.revision > known) break;
      clearance.dropped(proxy);
    }
  }
  const { heldRenewal } = proxy;
  if (heldRenewal !== undefined) grantFeedLease(core, proxy, heldRenewal);
}

/** P3: of a move or of an ended incarnation. */
export function quiet(core: Core, proxy: Proxy, frame: FrameOf<"quiet">): void {
  if (frame.key === "") {
    core.ended.get(frame.incarnation)?.clearance.quiet(proxy);
    return;
  }
  const shard = core.services.get(frame.service)?.shards.get(frame.key);
  const clearance = shard?.move?.clearance;
  if (shard?.epoch === frame.epoch && clearance !== undefined) clearance.quiet(proxy);
}

/** P1, S1 */
export function renewFeedLease(core: Core, proxy: Proxy, frame: FrameOf<"renewFeedLease">): void {
  proxy.load = frame.load;
  proxy.heldRenewal = frame.nonce;
  acknowledge(core, proxy, frame.dropped);
}

/** P8: held back until what was published F/3 or more ago is acknowledged. */
function grantFeedLease(core: Core, proxy: Proxy, nonce: number): void {
  const smallestF = Math.min(...Array.from(core.services.values(), (s) => s.row.feedLeaseMs));
  const owed = Number.isFinite(smallestF) ? core.feed.publishedBy(core.now() - smallestF / 3) : 0n;
  if (proxy.dropped < owed) return;
  proxy.heldRenewal = undefined;
  // From now on it may believe: it counts for everything that is still under way (M4, P6).
  core.joinClearances(proxy);
  proxy.renewedAt = core.now();
  const answer = (): void => {
    if (proxy.peer === undefined) return;
    proxy.renewedAt = core.now();
    core.counters.renewals += 1;
    core.send(proxy.peer, { case: "feedLease", value: { nonce, revision: core.feed.last } });
  };
  if (core.config.storeExclusive) core.answer(answer);
  else core.renewals.push(answer);
}
