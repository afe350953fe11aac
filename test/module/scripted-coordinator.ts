import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import {
  After,
  encodeFrame,
  type FrameBody,
  type FrameBodyInit,
  MintOutcome,
  PeerSocket,
  ResolveOutcome,
  Role,
  ServerState,
} from "@belay/protocol";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { FeedEntrySchema } from "@belay/protocol";

type Entry = NonNullable<
  Extract<MessageInitShape<typeof FeedEntrySchema>, { entry?: unknown }>["entry"]
>;

export interface ScriptedService {
  readonly name: string;
  readonly guarded: boolean;
  readonly minted?: boolean;
  readonly leaseMs?: number;
  readonly parkMs?: number;
  readonly drainMs?: number;
}

export interface ScriptedServer {
  readonly service: string;
  readonly id: string;
  readonly address: string;
  readonly incarnation: bigint;
}

interface Shard {
  readonly incarnation: bigint;
  readonly epoch: bigint;
  readonly moving: boolean;
}

/**
 * A coordinator for one proxy that does what the test says: speaks the real frames, keeps commit
 * order, and decides nothing by itself but the placement of free keys, which takes turns.
 */
export class ScriptedCoordinator {
  readonly #server: Server;
  readonly #generation = Buffer.alloc(16, 7);
  readonly #services = new Map<string, ScriptedService>();
  readonly #servers = new Map<string, ScriptedServer>();
  readonly #gone: ScriptedServer[] = [];
  readonly #shards = new Map<string, Shard>();
  #peer: PeerSocket | undefined;
  #revision = 1000n;
  #turn = 0;
  #dropped = 0n;
  /** Frames of the proxy, newest last; lease renewals are only counted. */
  readonly frames: FrameBody[] = [];
  renewals = 0;
  /** Proxies get a welcome, but no snapshot. */
  mute = false;
  /** Renewals get no answer. */
  silent = false;
  /** Resolves and mints get no answer. */
  deaf = false;
  /** What free keys get instead of an owner. */
  refuse: ResolveOutcome | undefined;
  mintOutcome: MintOutcome | undefined;

  constructor() {
    this.#server = createServer((socket) => this.#accept(socket));
  }

  async listen(port = 0): Promise<number> {
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("no TCP address");
    return address.port;
  }

  async close(): Promise<void> {
    this.#peer?.destroy();
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
  }

  /** Cuts the proxy's connection; it comes back by itself. */
  cut(): void {
    this.#peer?.destroy();
  }

  /** What has been published. */
  get revision(): bigint {
    return this.#revision;
  }

  /** What the proxy has acknowledged (P3). */
  get dropped(): bigint {
    return this.#dropped;
  }

  get connected(): boolean {
    return this.#peer !== undefined && !this.#peer.ended;
  }

  define(service: ScriptedService): void {
    this.#services.set(service.name, service);
    this.#broadcast([this.#serviceEntry(service)]);
  }

  register(service: string, id: string, address: string): ScriptedServer {
    const revision = this.#next();
    const server: ScriptedServer = { service, id, address, incarnation: revision };
    this.#servers.set(`${service}/${id}`, server);
    this.#publish([serverEntry(server, ServerState.ACTIVE)], revision);
    return server;
  }

  drain(server: ScriptedServer): void {
    this.#broadcast([serverEntry(server, ServerState.DRAINING)]);
  }

  /** Ends an incarnation; its shards are free. */
  end(server: ScriptedServer, after: After = After.EXPIRED): void {
    this.#servers.delete(`${server.service}/${server.id}`);
    this.#gone.push(server);
    for (const [name, shard] of this.#shards) {
      if (shard.incarnation === server.incarnation) this.#shards.delete(name);
    }
    this.#broadcast([endedEntry(server, after)]);
  }

  /** Whom the key belongs to, placed now if it was free. */
  own(service: string, key: string, server: ScriptedServer): bigint {
    const epoch = this.#next();
    this.#shards.set(`${service}/${key}`, {
      incarnation: server.incarnation,
      epoch,
      moving: false,
    });
    // Nobody is told of a placement but who asks, so the batch of its commit is empty.
    this.#publish([], epoch);
    return epoch;
  }

  ownerOf(service: string, key: string): Shard | undefined {
    return this.#shards.get(`${service}/${key}`);
  }

  startMove(service: string, key: string): void {
    const shard = this.#shards.get(`${service}/${key}`);
    if (shard === undefined) throw new Error(`${key} has no owner`);
    this.#shards.set(`${service}/${key}`, { ...shard, moving: true });
    const { epoch, incarnation } = shard;
    const drainMs = this.#services.get(service)?.drainMs ?? 10_000;
    this.#broadcast([
      { case: "shardMoving", value: { service, key, epoch, incarnation, drainMs } },
    ]);
  }

  finishMove(service: string, key: string, to: ScriptedServer): void {
    const epoch = this.#next();
    const { incarnation } = to;
    this.#shards.set(`${service}/${key}`, { incarnation, epoch, moving: false });
    this.#publish(
      [{ case: "shardOwner", value: { service, key, epoch, incarnation, after: After.RELEASED } }],
      epoch,
    );
  }

  #accept(socket: Socket): void {
    const peer = new PeerSocket({
      socket,
      outgoingBytesMax: 64 * 1024 * 1024,
      onFrame: (body) => this.#take(peer, body),
      onEnd: () => {
        if (this.#peer === peer) this.#peer = undefined;
      },
    });
  }

  #take(peer: PeerSocket, body: FrameBody): void {
    if (body.case === "renewFeedLease") {
      this.renewals++;
      this.#acknowledged(body.value.dropped);
      const { nonce } = body.value;
      if (!this.silent)
        this.#send({ case: "feedLease", value: { nonce, revision: this.#revision } });
      return;
    }
    this.frames.push(body);
    if (body.case === "hello") {
      if (body.value.role !== Role.PROXY) throw new Error("only proxies come here");
      this.#welcome(peer);
    } else if (body.case === "dropped") this.#acknowledged(body.value.revision);
    else if (body.case === "resolve" && !this.deaf) this.#resolve(body.value);
    else if (body.case === "mint" && !this.deaf) this.#mint(body.value);
    else if (body.case === "ping") this.#send({ case: "pong", value: { nonce: body.value.nonce } });
  }

  #acknowledged(revision: bigint): void {
    if (revision > this.#dropped) this.#dropped = revision;
  }

  #welcome(peer: PeerSocket): void {
    this.#peer = peer;
    const revision = this.#revision;
    this.#send({
      case: "welcome",
      value: { generation: this.#generation, term: 1n, revision, marginMs: 200 },
    });
    if (this.mute) return;
    const entries: Entry[] = [
      ...[...this.#services.values()].map((service) => this.#serviceEntry(service)),
      ...[...this.#servers.values()].map((server) => serverEntry(server, ServerState.ACTIVE)),
      ...this.#gone.map((server) => endedEntry(server, After.RELEASED)),
    ];
    this.#send({
      case: "feedBatch",
      value: {
        previous: 0n,
        revision,
        entries: entries.map((entry) => ({ entry })),
        snapshot: true,
        complete: true,
        term: 1n,
      },
    });
  }

  #resolve(ask: { requestId: number; service: string; key: string }): void {
    const { requestId, service, key } = ask;
    const known = this.#services.has(service);
    const found = this.#shards.get(`${service}/${key}`);
    const answer = (outcome: ResolveOutcome, more: object = {}): void => {
      this.#send({
        case: "resolved",
        value: { requestId, service, key, outcome, revision: this.#revision, ...more },
      });
    };
    if (!known) return answer(ResolveOutcome.SERVICE_UNKNOWN);
    if (found !== undefined) {
      const { incarnation, epoch, moving } = found;
      return answer(moving ? ResolveOutcome.MOVING : ResolveOutcome.OWNER, { incarnation, epoch });
    }
    if (this.refuse !== undefined) return answer(this.refuse, { retryAfterMs: 1500 });
    if (this.#services.get(service)?.minted === true) return answer(ResolveOutcome.UNKNOWN_KEY);
    const servers = [...this.#servers.values()].filter((server) => server.service === service);
    const server = servers[this.#turn++ % Math.max(servers.length, 1)];
    if (server === undefined) return answer(ResolveOutcome.NO_SERVER, { retryAfterMs: 1000 });
    const epoch = this.own(service, key, server);
    answer(ResolveOutcome.OWNER, { incarnation: server.incarnation, epoch, placed: true });
  }

  #mint(ask: { requestId: number; service: string; key: string; incarnation: bigint }): void {
    const { requestId, service, key, incarnation } = ask;
    const held = this.#shards.get(`${service}/${key}`);
    const conflict = held !== undefined && held.incarnation !== incarnation;
    const outcome = this.mintOutcome ?? (conflict ? MintOutcome.CONFLICT : MintOutcome.OK);
    const epoch = this.#next();
    if (outcome === MintOutcome.OK) {
      this.#shards.set(`${service}/${key}`, { incarnation, epoch, moving: false });
    }
    this.#publish([], epoch);
    this.#send({
      case: "minted",
      value: { requestId, service, key, outcome, epoch, revision: epoch },
    });
  }

  #serviceEntry(service: ScriptedService): Entry {
    const leaseMs = service.leaseMs ?? 15_000;
    return {
      case: "service",
      value: {
        name: service.name,
        shardingGeneration: 1,
        leaseMs,
        feedLeaseMs: leaseMs,
        marginMs: 200,
        idleMs: 1_800_000,
        drainMs: service.drainMs ?? 10_000,
        parkMs: service.parkMs ?? 12_000,
        guarded: service.guarded,
        minted: service.minted ?? false,
      },
    };
  }

  #next(): bigint {
    return this.#revision + 1n;
  }

  #broadcast(entries: Entry[]): void {
    this.#publish(entries, this.#next());
  }

  #publish(entries: Entry[], revision: bigint): void {
    const previous = this.#revision;
    if (revision <= previous) throw new Error("revisions rise");
    this.#revision = revision;
    this.#send({
      case: "feedBatch",
      value: { previous, revision, entries: entries.map((entry) => ({ entry })), term: 1n },
    });
  }

  #send(body: FrameBodyInit): void {
    this.#peer?.send(encodeFrame(body));
  }
}

function serverEntry(server: ScriptedServer, state: ServerState): Entry {
  const { service, id, incarnation, address } = server;
  return {
    case: "server",
    value: { service, serverId: id, incarnation, address, zone: "", state },
  };
}

function endedEntry(server: ScriptedServer, after: After): Entry {
  const { service, id, incarnation } = server;
  return { case: "serverEnded", value: { service, serverId: id, incarnation, after } };
}
