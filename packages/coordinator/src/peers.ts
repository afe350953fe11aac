import { timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import type { Logger } from "@belay/model";
import type { PeerId } from "@belay/ownership";
import { encodeFrame, type FrameBody, type PeerEnd, PeerSocket, Role } from "@belay/protocol";

/** Bytes that may wait for one peer to read them; a slower reader is cut and starts anew (F2). */
const OUTGOING_BYTES_MAX = 16 * 1024 * 1024;
/** How long a connection may stay silent before its Hello. */
const HELLO_MS_MAX = 5000;
/** TCP looks after half-open connections; liveness of peers is the business of leases. */
const KEEP_ALIVE_MS = 10_000;

/** What the owner of the peers does with their frames. */
interface PeerHandler {
  connected(peer: PeerId): void;
  frame(peer: PeerId, frame: FrameBody): void;
  disconnected(peer: PeerId): void;
}

interface PeersOptions {
  readonly handler: PeerHandler;
  readonly logger: Logger;
  readonly token: string;
  readonly peersMax: number;
  readonly outgoingBytesMax?: number;
}

interface Peer {
  readonly id: PeerId;
  readonly socket: PeerSocket;
  readonly helloTimer: NodeJS.Timeout;
  role: Role;
  name: string;
}

const roleNames: ReadonlyMap<Role, string> = new Map<Role, string>([
  [Role.UNSPECIFIED, "unknown"],
  [Role.PROXY, "proxy"],
  [Role.SERVER, "server"],
  [Role.GUARD, "guard"],
  [Role.CONTROL_PLANE, "control-plane"],
]);

const nameOf = (role: Role): string => roleNames.get(role) ?? "unknown";

/** Decoded bytes are views of the socket's 64 KiB chunk: what is kept for long is copied out of it. */
function keepNoViews(frame: FrameBody): void {
  if (frame.case === "hello") {
    frame.value.processId = Uint8Array.from(frame.value.processId);
    frame.value.generation = Uint8Array.from(frame.value.generation);
  } else if (frame.case === "register") {
    frame.value.secret = Uint8Array.from(frame.value.secret);
  }
}

/** False also for a wrong length; takes the same time for every wrong token of the right length. */
function isSameToken(given: string, expected: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/**
 * The connections of a coordinator. A peer exists for the handler from its Hello with the right
 * token to its end; everything to it goes down its one stream in the order of the calls (P2).
 */
export class Peers {
  readonly #options: PeersOptions;
  readonly #peers = new Map<PeerId, Peer>();
  readonly #ends = new Map<PeerEnd, number>();
  #lastId = 0;
  #held = false;

  constructor(options: PeersOptions) {
    this.#options = options;
  }

  /** Takes a connection that is paused. */
  accept(raw: Socket): void {
    const id = (this.#lastId += 1);
    raw.setKeepAlive(true, KEEP_ALIVE_MS);
    const socket = new PeerSocket({
      socket: raw,
      outgoingBytesMax: this.#options.outgoingBytesMax ?? OUTGOING_BYTES_MAX,
      onFrame: (frame) => this.#take(peer, frame),
      onEnd: (end, cause) => this.#ended(peer, end, cause),
    });
    const helloTimer = setTimeout(() => {
      socket.fail({ code: "bad-frame", message: `no Hello within ${HELLO_MS_MAX} ms` });
    }, HELLO_MS_MAX);
    const peer: Peer = { id, socket, helloTimer, role: Role.UNSPECIFIED, name: "" };
    this.#peers.set(id, peer);
    socket.holdReading(this.#held);
    if (this.#peers.size > this.#options.peersMax) {
      const message = `${this.#options.peersMax} peers are connected: no room for more`;
      socket.fail({ code: "busy", message, retryAfterMs: 1000 });
    }
  }

  send(id: PeerId, wire: Uint8Array): void {
    this.#peers.get(id)?.socket.send(wire);
  }

  /** After all that was sent to it before. */
  close(id: PeerId): void {
    this.#peers.get(id)?.socket.close();
  }

  /** Backpressure: while held, no peer's frames are read. */
  holdReading(held: boolean): void {
    if (held === this.#held) return;
    this.#held = held;
    for (const peer of this.#peers.values()) peer.socket.holdReading(held);
  }

  closeAll(): void {
    for (const peer of this.#peers.values()) peer.socket.close();
  }

  /** At once, with nothing more said: a deposed coordinator publishes nothing (T1, I5). */
  destroyAll(): void {
    for (const peer of this.#peers.values()) peer.socket.destroy();
  }

  countByRole(): Map<string, number> {
    const counts = new Map([...roleNames.values()].map((name) => [name, 0]));
    for (const peer of this.#peers.values()) {
      const name = nameOf(peer.role);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return counts;
  }

  /** How connections have ended so far. */
  get ends(): ReadonlyMap<PeerEnd, number> {
    return this.#ends;
  }

  #take(peer: Peer, frame: FrameBody): void {
    const { handler } = this.#options;
    if (peer.role === Role.UNSPECIFIED && !this.#admit(peer, frame)) return;
    if (frame.case === "ping") {
      peer.socket.send(encodeFrame({ case: "pong", value: { nonce: frame.value.nonce } }));
    } else if (frame.case !== "pong") {
      keepNoViews(frame);
      handler.frame(peer.id, frame);
    }
  }

  /** The first frame: a Hello with the token; only then the handler hears of the peer. */
  #admit(peer: Peer, frame: FrameBody): boolean {
    if (frame.case !== "hello") {
      peer.socket.fail({ code: "bad-frame", message: `first frame is ${frame.case}, not Hello` });
      return false;
    }
    const { role, name, token } = frame.value;
    if (!isSameToken(token, this.#options.token)) {
      const message = "wrong token: use the token file that the coordinator was started with";
      peer.socket.fail({ code: "unauthorized", message });
      return false;
    }
    if (role === Role.UNSPECIFIED || !roleNames.has(role)) {
      peer.socket.fail({ code: "bad-frame", message: `role ${role} is none of this version's` });
      return false;
    }
    clearTimeout(peer.helloTimer);
    peer.role = role;
    peer.name = name;
    this.#options.logger.debug({ peer: peer.id, role: nameOf(role), name }, "peer connected");
    this.#options.handler.connected(peer.id);
    return true;
  }

  #ended(peer: Peer, end: PeerEnd, cause: Error | undefined): void {
    clearTimeout(peer.helloTimer);
    this.#peers.delete(peer.id);
    this.#ends.set(end, (this.#ends.get(end) ?? 0) + 1);
    const { logger, handler } = this.#options;
    const fields = { peer: peer.id, role: nameOf(peer.role), name: peer.name, end };
    if (end === "slow-reader") logger.warn(fields, "peer cut: it does not read (F2)");
    else logger.debug({ ...fields, cause: cause?.message }, "peer disconnected");
    if (peer.role !== Role.UNSPECIFIED) handler.disconnected(peer.id);
  }
}
