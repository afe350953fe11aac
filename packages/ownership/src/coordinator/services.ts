import { Placement, type ServiceSpec } from "@belay/protocol";
import type { FrameOf } from "../frame-init.ts";
import type { ServiceRow } from "../store.ts";
import type { Core } from "./core.ts";
import { watchIdle } from "./idle.ts";
import type { ProblemText } from "./problem.ts";
import { serviceEntry } from "./rows.ts";
import { dropRow } from "./shards.ts";
import type { Peer, Service } from "./state.ts";

const SERVICE_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const LEASE_MS_DEFAULT = 15_000;
const LEASE_MS_MIN = 500;
const LEASE_MS_MAX = 24 * 3_600_000;
const DRAIN_MS_DEFAULT = 10_000;
const PARK_MS_DEFAULT = 12_000;
/** Rows of a removed service that go in one commit. */
const REMOVED_PER_BATCH = 1_000;
const REMOVE_LOOK_MS = 1_000;

/** All of the request or nothing: a service that cannot be is told by name, and nothing changes. */
export function defineServices(core: Core, peer: Peer, frame: FrameOf<"defineServices">): void {
  const problem = findProblem(core, frame);
  if (problem !== undefined) {
    core.refuse(peer, { ...problem, requestId: frame.requestId });
    return;
  }
  for (const spec of frame.services) define(core, spec);
  for (const name of frame.removed) remove(core, name);
  core.answer(() =>
    core.send(peer, {
      case: "servicesDefined",
      value: { requestId: frame.requestId, revision: core.revision },
    }),
  );
}

function findProblem(core: Core, frame: FrameOf<"defineServices">): ProblemText | undefined {
  const names = new Set(core.services.keys());
  for (const spec of frame.services) {
    names.add(spec.name);
    const problem = findSpecProblem(core, spec);
    if (problem !== undefined) return problem;
  }
  if (names.size <= core.limits.services) return undefined;
  return {
    code: "too-many-services",
    message: `${names.size} services would be defined, ${core.limits.services} are the most.`,
  };
}

function findSpecProblem(core: Core, spec: ServiceSpec): ProblemText | undefined {
  const { leaseMs } = spec;
  const feedLeaseMs = spec.feedLeaseMs || leaseMs;
  if (!SERVICE_NAME.test(spec.name)) {
    return {
      code: "bad-service",
      message: `service name "${spec.name}" is not 1-63 of a-z 0-9 and -, with - only inside`,
    };
  }
  if (leaseMs !== 0 && (leaseMs < LEASE_MS_MIN || leaseMs > LEASE_MS_MAX)) {
    return {
      code: "bad-service",
      message: `service "${spec.name}": lease_ms ${leaseMs} is outside ${LEASE_MS_MIN}..${LEASE_MS_MAX}`,
    };
  }
  if (
    feedLeaseMs > (leaseMs || LEASE_MS_DEFAULT) ||
    (feedLeaseMs > 0 && feedLeaseMs < LEASE_MS_MIN)
  ) {
    return {
      code: "bad-service",
      message: `service "${spec.name}": feed_lease_ms ${feedLeaseMs} must be at least ${LEASE_MS_MIN} and at most the lease`,
    };
  }
  const known = core.services.get(spec.name);
  if (known === undefined || known.row.guarded === spec.guarded || known.servers.size === 0) {
    return undefined;
  }
  return {
    code: "guard-change",
    message: `service "${spec.name}" has ${known.servers.size} live servers, so ownership.guard cannot change: stop them first, or give the service another name.`,
  };
}

function rowOf(spec: ServiceSpec): ServiceRow {
  const leaseMs = spec.leaseMs || LEASE_MS_DEFAULT;
  const feedLeaseMs = spec.feedLeaseMs || leaseMs;
  return {
    table: "service",
    name: spec.name,
    leaseMs,
    feedLeaseMs,
    waitFeedLeaseMs: feedLeaseMs,
    idleMs: spec.idleMs,
    drainMs: spec.drainMs || DRAIN_MS_DEFAULT,
    parkMs: spec.parkMs || PARK_MS_DEFAULT,
    guarded: spec.guarded,
    minted: spec.minted,
    placement: spec.placement === Placement.UNSPECIFIED ? Placement.LEAST_LOADED : spec.placement,
    movesPerSecond: spec.movesPerSecond,
    removed: false,
  };
}

function define(core: Core, spec: ServiceSpec): void {
  const known = core.services.get(spec.name);
  const wanted = rowOf(spec);
  // F raised: committed before use. F lowered: waits count with the old one for W(old) (H17).
  const waitFeedLeaseMs = Math.max(wanted.feedLeaseMs, known?.row.waitFeedLeaseMs ?? 0);
  const row: ServiceRow = { ...wanted, waitFeedLeaseMs };
  if (known !== undefined && isSame(known.row, row)) return;
  const service = known ?? addService(core, row);
  const idleChanged = service.row.idleMs !== row.idleMs;
  service.row = row;
  if (idleChanged) retrackIdle(service);
  core.staging.put(row);
  core.staging.publish(serviceEntry(row, core.config.marginMs));
  if (waitFeedLeaseMs > row.feedLeaseMs) lowerLater(core, service);
}

const isSame = (a: ServiceRow, b: ServiceRow): boolean => {
  const others = new Map<string, unknown>(Object.entries(b));
  return Object.entries(a).every(([name, value]) => others.get(name) === value);
};

export function addService(core: Core, row: ServiceRow): Service {
  const service: Service = {
    row,
    shards: new Map(),
    servers: new Map(),
    tombstones: new Map(),
    hostsVersion: 0,
    idleBuckets: new Map(),
  };
  core.services.set(row.name, service);
  core.due.add(core.now(), () => watchIdle(core, service));
  return service;
}

/** The buckets are by the old idle time; what is untouched is seen within the new one from now. */
function retrackIdle(service: Service): void {
  const first = service.idleBuckets.keys().next().value;
  if (first === undefined && service.row.idleMs === 0) return;
  const shards = Array.from(service.shards.values());
  service.idleBuckets.clear();
  if (service.row.idleMs === 0) return;
  for (const shard of shards) {
    const bucket = Math.ceil((shard.touchedAt + service.row.idleMs) / 1000);
    const list = service.idleBuckets.get(bucket);
    if (list === undefined) service.idleBuckets.set(bucket, [shard]);
    else list.push(shard);
  }
}

/** Also after a restart: W(old) from then on. */
export function lowerLater(core: Core, service: Service): void {
  core.later(() =>
    core.due.add(core.now() + core.wait(service.row.waitFeedLeaseMs), () => {
      const { feedLeaseMs, waitFeedLeaseMs } = service.row;
      if (waitFeedLeaseMs <= feedLeaseMs || core.services.get(service.row.name) !== service) return;
      service.row = { ...service.row, waitFeedLeaseMs: feedLeaseMs };
      core.staging.put(service.row);
    }),
  );
}

function remove(core: Core, name: string): void {
  const service = core.services.get(name);
  if (service === undefined || service.row.removed) return;
  service.row = { ...service.row, removed: true };
  core.staging.put(service.row);
  removeLater(core, service);
}

/** Its rows stay until its servers are gone, then go in bounded commits. Also after a restart. */
export function removeLater(core: Core, service: Service): void {
  core.due.add(core.now(), () => removeStep(core, service));
}

function removeStep(core: Core, service: Service): void {
  if (!service.row.removed || core.services.get(service.row.name) !== service) return;
  if (service.servers.size > 0) {
    core.due.add(core.now() + REMOVE_LOOK_MS, () => removeStep(core, service));
    return;
  }
  let count = 0;
  for (const shard of service.shards.values()) {
    if (count >= REMOVED_PER_BATCH) {
      core.later(() => removeStep(core, service));
      return;
    }
    dropRow(core, shard);
    count += 1;
  }
  for (const serverId of service.tombstones.keys()) {
    core.staging.delete({ table: "tombstone", service: service.row.name, serverId });
  }
  core.services.delete(service.row.name);
  core.staging.delete({ table: "service", name: service.row.name });
  core.staging.publish({
    entry: { case: "serviceRemoved", value: { name: service.row.name } },
  });
}
