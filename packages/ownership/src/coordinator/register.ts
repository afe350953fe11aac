import { After, ServerState } from "@belay/protocol";
import type { FrameOf } from "../frame-init.ts";
import type { Core } from "./core.ts";
import { sendRevokes } from "./moves.ts";
import type { ProblemText } from "./problem.ts";
import { serverEntry } from "./rows.ts";
import { dropTombstone, endServer } from "./server-end.ts";
import { watchLease } from "./server-lease.ts";
import type { Peer, Server, Service } from "./state.ts";

type Register = FrameOf<"register">;

const SERVER_ID = /^[A-Za-z0-9._-]{1,128}$/;
const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.]{2,45}\]):(\d{1,5})$/;
const ZONE_LENGTH_MAX = 128;
const SECRET_BYTES_MIN = 16;
const SECRET_BYTES_MAX = 64;

/**
 * A new incarnation (S5, S7). One whose address waits for the proxies to let go of its former
 * incarnation is answered when they have.
 */
export function register(core: Core, peer: Peer, frame: Register): void {
  if (!core.peers.has(peer.id)) return;
  const { requestId } = frame;
  const service = core.services.get(frame.service);
  if (service === undefined || service.row.removed) {
    core.refuse(peer, {
      requestId,
      code: "service-unknown",
      message: `No service "${frame.service}" is defined: write its service file, or wait until the control plane has told it.`,
      retryAfterMs: 1000,
    });
    return;
  }
  const same = service.servers.get(frame.serverId);
  if (same !== undefined && !peer.wentBack && isSameSecret(same.row.secret, frame.secret)) {
    // Said again, for its answer was lost: the incarnation is there, and this renews it.
    attach(core, peer, same);
    return core.answer(() => {
      same.leaseUntil = core.now() + core.wait(same.row.leaseMs);
      greet(core, same, requestId);
    });
  }
  const invalid = findInvalid(frame) ?? findMismatch(core, { peer, service, frame });
  if (invalid !== undefined) return core.refuse(peer, { ...invalid, requestId });
  if (!endPredecessor(core, service, frame)) {
    return core.refuse(peer, {
      requestId,
      code: "wrong-secret",
      message: `previous_secret is not that of incarnation ${frame.previousIncarnation}: only the process that registered it may speak for it.`,
    });
  }
  const taken = findTaken(core, service, frame);
  if (taken !== undefined) return core.refuse(peer, { ...taken, requestId });
  if (waitsForAddress(core, peer, frame)) return undefined;
  return admit(core, { peer, service, frame });
}

function findInvalid(frame: Register): ProblemText | undefined {
  if (!SERVER_ID.test(frame.serverId)) {
    return {
      code: "bad-server-id",
      message: `server id "${frame.serverId}" is not 1-128 characters of A-Z a-z 0-9 . _ -`,
    };
  }
  const port = Number(ADDRESS.exec(frame.address)?.[1] ?? 0);
  if (port < 1 || port > 65_535) {
    return {
      code: "bad-address",
      message: `address "${frame.address}" is not IP:port as proxies dial it, such as 10.0.0.7:8080 or [fd00::7]:8080; names are not resolved.`,
    };
  }
  const { length } = frame.secret;
  if (
    length < SECRET_BYTES_MIN ||
    length > SECRET_BYTES_MAX ||
    frame.zone.length > ZONE_LENGTH_MAX
  ) {
    return {
      code: "bad-frame",
      message: `the secret must have ${SECRET_BYTES_MIN}-${SECRET_BYTES_MAX} bytes (has ${length}), the zone at most ${ZONE_LENGTH_MAX} characters.`,
    };
  }
  return undefined;
}

interface Registration {
  readonly peer: Peer;
  readonly service: Service;
  readonly frame: Register;
}

function findMismatch(core: Core, { peer, service, frame }: Registration): ProblemText | undefined {
  if (peer.server !== undefined) {
    return {
      code: "bad-frame",
      message: `this session already has incarnation ${peer.server.row.incarnation}; one session is one server.`,
    };
  }
  if (service.row.guarded && !frame.guarded) {
    return {
      code: "guard-mismatch",
      message: `service "${frame.service}" is guarded, and this server does not admit requests itself: use the SDK in it, or set ownership.guard: none in the service file.`,
    };
  }
  if (service.servers.size >= core.limits.serversPerService) {
    return {
      code: "too-many-servers",
      message: `service "${frame.service}" already has ${service.servers.size} servers, the most that are kept.`,
      retryAfterMs: 1000,
    };
  }
  return undefined;
}

/** S5: proven by its secret, the predecessor's end is a release. False: the proof is wrong. */
function endPredecessor(core: Core, service: Service, frame: Register): boolean {
  const previous = core.servers.get(frame.previousIncarnation);
  if (previous === undefined || previous.service !== service) return true;
  if (!isSameSecret(previous.row.secret, frame.previousSecret)) return false;
  endServer(core, previous, After.RELEASED);
  return true;
}

function findTaken(core: Core, service: Service, frame: Register): ProblemText | undefined {
  const sameId = service.servers.get(frame.serverId);
  if (sameId !== undefined) {
    return {
      code: "server-id-taken",
      message: `server "${frame.serverId}" of service "${frame.service}" is alive at ${sameId.row.address}: choose another id, or stop it first.`,
      retryAfterMs: leaseLeftMs(core, sameId),
    };
  }
  for (const server of service.servers.values()) {
    if (server.row.address !== frame.address) continue;
    return {
      code: "address-taken",
      message: `address ${frame.address} belongs to server "${server.row.serverId}" until its lease ends (S7): stop it, wait, or use another port.`,
      retryAfterMs: leaseLeftMs(core, server),
    };
  }
  return undefined;
}

/** S7: some proxy may still send requests for a former incarnation to this address. */
function waitsForAddress(core: Core, peer: Peer, frame: Register): boolean {
  for (const ended of core.ended.values()) {
    if (ended.address !== frame.address) continue;
    if (ended.waiting.length >= core.limits.waitingRegistrations) {
      core.refuse(peer, {
        requestId: frame.requestId,
        code: "address-taken",
        message: `too many wait for address ${frame.address} already.`,
        retryAfterMs: 1000,
      });
    } else {
      ended.waiting.push(() => register(core, peer, frame));
    }
    return true;
  }
  return false;
}

function admit(core: Core, { peer, service, frame }: Registration): void {
  dropTombstone(core, service, frame.serverId);
  const now = core.now();
  const server: Server = {
    service,
    row: {
      table: "server",
      incarnation: core.staging.ownRevision(),
      service: service.row.name,
      serverId: frame.serverId,
      address: frame.address,
      zone: frame.zone,
      guarded: frame.guarded,
      capacity: frame.capacity,
      secret: frame.secret,
      leaseMs: service.row.leaseMs,
      state: ServerState.ACTIVE,
    },
    peer,
    leaseUntil: now + core.wait(service.row.leaseMs),
    registeredAt: now,
    shards: new Set(),
    moving: new Set(),
    load: undefined,
    reachable: false,
    reachableVersion: -1,
    drainList: undefined,
  };
  core.servers.set(server.row.incarnation, server);
  service.servers.set(server.row.serverId, server);
  peer.server = server;
  // T4: what it held of the lost commits is gone with its former life.
  peer.wentBack = false;
  core.staging.put(server.row);
  core.staging.publish(serverEntry(server.row));
  core.answer(() => {
    server.leaseUntil = core.now() + core.wait(server.row.leaseMs);
    sendRegistered(core, server, frame.requestId);
  });
  watchLease(core, server);
  core.logger.info(
    { service: service.row.name, server: frame.serverId, incarnation: server.row.incarnation },
    "server registered",
  );
}

/** `peer` is the server's session from now on. */
export function attach(core: Core, peer: Peer, server: Server): void {
  const old = server.peer;
  if (old !== undefined && old !== peer) {
    old.server = undefined;
    core.answer(() => core.close(old, "replaced by a newer session of the same incarnation"));
  }
  server.peer = peer;
  peer.server = server;
}

/** Answers Resume: who it is, then what it has to give up. */
export function greet(core: Core, server: Server, requestId: number): void {
  sendRegistered(core, server, requestId);
  sendRevokes(core, server, server.moving);
  if (server.drainList !== undefined) sendProgress(core, server);
}

export function sendProgress(core: Core, server: Server): void {
  core.send(server.peer, {
    case: "drainProgress",
    value: { incarnation: server.row.incarnation, remaining: server.shards.size },
  });
}

function sendRegistered(core: Core, server: Server, requestId: number): void {
  core.send(server.peer, {
    case: "registered",
    value: {
      requestId,
      incarnation: server.row.incarnation,
      leaseMs: server.row.leaseMs,
      marginMs: core.config.marginMs,
      drainMs: server.service.row.drainMs,
      asOf: core.revision,
    },
  });
}

/** Until S3 may expire it, whole milliseconds. */
export const leaseLeftMs = (core: Core, server: Server): number =>
  Math.max(0, Math.ceil(server.leaseUntil - core.now()));

/** Compares in the same time wherever they differ. */
export function isSameSecret(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (const [index, byte] of a.entries()) difference |= byte ^ (b[index] ?? 0);
  return difference === 0;
}
