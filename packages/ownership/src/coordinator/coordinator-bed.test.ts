import type { Logger, Random } from "@belay/model";
import {
  encodeFrame,
  type FrameBody,
  type FrameBodyInit,
  type FrameCase,
  FrameDecoder,
  Role,
} from "@belay/protocol";
import type { FrameOf } from "../frame-init.ts";
import { MemoryStore } from "../memory-store.ts";
import type { Batch, CommitOutcome, Row, TakeOver } from "../store.ts";
import { createCoordinator } from "./coordinator.ts";
import type { Coordinator, CoordinatorConfig, Effect, PeerId } from "./event.ts";

export const MARGIN_MS = 200;

/** The frame as it comes out of a connection. */
export function decoded(body: FrameBodyInit): FrameBody {
  const frames: FrameBody[] = [];
  new FrameDecoder((frame) => frames.push(frame)).push(encodeFrame(body));
  const [frame] = frames;
  if (frame === undefined) throw new Error("a frame without a body");
  return frame;
}

export function countingRandom(): Random {
  let count = 0;
  const next = (): number => ((count += 1) * 0.618_033_988_7) % 1;
  return {
    next,
    bytes: (length) => Uint8Array.from({ length }, () => Math.floor(next() * 256)),
  };
}

export const quietLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** A coordinator with its store and its peers, all in one place; time moves by `advance`. */
export class CoordinatorBed {
  now = 1_000_000;
  readonly store = new MemoryStore(countingRandom());
  readonly commits: Batch[] = [];
  readonly closed: PeerId[] = [];
  exit: Extract<Effect, { type: "exit" }> | undefined;
  /** False: commits wait until `commit()`. */
  autoCommit = true;
  meta: TakeOver | undefined;
  readonly #config: Partial<CoordinatorConfig>;
  #machine: Coordinator | undefined;
  #pending: Batch | undefined;
  #peers = 0;
  readonly #inbox = new Map<PeerId, FrameBody[]>();
  #requestId = 0;

  constructor(config: Partial<CoordinatorConfig> = {}) {
    this.#config = config;
  }

  static async start(config: Partial<CoordinatorConfig> = {}): Promise<CoordinatorBed> {
    const bed = new CoordinatorBed(config);
    await bed.restart();
    return bed;
  }

  get machine(): Coordinator {
    if (this.#machine === undefined) throw new Error("not started");
    return this.#machine;
  }

  /** As after a crash: what was committed is loaded, connections are gone. */
  async restart(unixSeconds = 1_700_000_000 + this.now / 1000): Promise<void> {
    this.#inbox.clear();
    this.#pending = undefined;
    this.meta = await this.store.takeOver(unixSeconds);
    const rows: Iterable<Row> = await this.store.load();
    this.#machine = createCoordinator(
      {
        clock: { now: () => this.now },
        random: countingRandom(),
        logger: quietLogger,
        marginMs: MARGIN_MS,
        storeName: "memory",
        storeExclusive: true,
        ...this.#config,
      },
      { meta: this.meta, rows },
    );
    this.settle();
  }

  connect(role: Role, hello: Partial<FrameOf<"hello">> = {}): PeerId {
    const peer = (this.#peers += 1);
    this.#inbox.set(peer, []);
    this.machine.handle({ type: "connected", peer });
    this.send(peer, {
      case: "hello",
      value: {
        protocolVersion: 1,
        role,
        name: `peer-${peer}`,
        processId: hello.processId ?? Uint8Array.from({ length: 16 }, () => peer),
        generation: hello.generation ?? new Uint8Array(0),
        revision: hello.revision ?? 0n,
        term: hello.term ?? 0n,
      },
    });
    return peer;
  }

  disconnect(peer: PeerId): void {
    this.machine.handle({ type: "disconnected", peer });
    this.settle();
  }

  send(peer: PeerId, frame: FrameBodyInit): void {
    this.machine.handle({ type: "frame", peer, frame: decoded(frame) });
    this.settle();
  }

  nextRequestId(): number {
    return (this.#requestId += 1);
  }

  /** Sends without carrying anything out, so that several frames share a turn. */
  sendLater(peer: PeerId, frame: FrameBodyInit): void {
    this.machine.handle({ type: "frame", peer, frame: decoded(frame) });
  }

  advance(ms: number): void {
    const until = this.now + ms;
    for (let count = 0; count < 100_000; count += 1) {
      const at = this.machine.wakeAt();
      if (at > until) break;
      this.now = Math.max(this.now, at);
      this.machine.handle({ type: "tick" });
      this.settle();
    }
    this.now = until;
  }

  /** Decides the commit that waits. */
  commit(outcome?: CommitOutcome): void {
    const batch = this.#pending;
    if (batch === undefined) throw new Error("no commit waits");
    this.#pending = undefined;
    this.machine.handle({ type: "committed", outcome: outcome ?? this.store.commitNow(batch) });
    this.settle();
  }

  get commitWaits(): boolean {
    return this.#pending !== undefined;
  }

  settle(): void {
    for (let effects = this.machine.take(); effects.length > 0; effects = this.machine.take()) {
      for (const effect of effects) this.#carryOut(effect);
      if (this.autoCommit && this.#pending !== undefined) this.commit();
    }
  }

  /** Takes out the oldest frame of that name that `peer` got; undefined: none. */
  take<Case extends FrameCase>(peer: PeerId, name: Case): FrameOf<Case> | undefined {
    const inbox = this.#inbox.get(peer) ?? [];
    const frame = inbox.find((candidate) => candidate.case === name);
    if (frame === undefined) return undefined;
    inbox.splice(inbox.indexOf(frame), 1);
    return frame.value as FrameOf<Case>;
  }

  /** `take`, but it must be there. */
  got<Case extends FrameCase>(peer: PeerId, name: Case): FrameOf<Case> {
    const frame = this.take(peer, name);
    if (frame !== undefined) return frame;
    const names = (this.#inbox.get(peer) ?? []).map((other) => other.case);
    throw new Error(`peer ${peer} got no ${name}, but [${names.join(", ")}]`);
  }

  takeAll<Case extends FrameCase>(peer: PeerId, name: Case): FrameOf<Case>[] {
    const all: FrameOf<Case>[] = [];
    for (let frame = this.take(peer, name); frame !== undefined; frame = this.take(peer, name)) {
      all.push(frame);
    }
    return all;
  }

  inbox(peer: PeerId): readonly FrameBody[] {
    return this.#inbox.get(peer) ?? [];
  }

  clear(peer: PeerId): void {
    this.#inbox.set(peer, []);
  }

  #carryOut(effect: Effect): void {
    switch (effect.type) {
      case "send":
        this.#inbox.get(effect.peer)?.push(decoded(effect.frame));
        break;
      case "broadcast":
        for (const peer of effect.peers) this.#inbox.get(peer)?.push(decoded(effect.frame));
        break;
      case "close":
        this.closed.push(effect.peer);
        this.machine.handle({ type: "disconnected", peer: effect.peer });
        break;
      case "commit":
        this.commits.push(effect.batch);
        this.#pending = effect.batch;
        break;
      case "exit":
        this.exit = effect;
        break;
    }
  }
}

export type RegisterOptions = Omit<
  Extract<FrameBodyInit, { case: "register" }>["value"],
  "$typeName"
>;

/** Peers in the roles that most tests need. */
export class Actors {
  readonly bed: CoordinatorBed;
  readonly controlPlane: PeerId;

  constructor(bed: CoordinatorBed) {
    this.bed = bed;
    this.controlPlane = bed.connect(Role.CONTROL_PLANE);
  }

  define(
    spec: NonNullable<
      Extract<FrameBodyInit, { case: "defineServices" }>["value"]["services"]
    >[number],
  ): void {
    this.bed.send(this.controlPlane, {
      case: "defineServices",
      value: { requestId: this.bed.nextRequestId(), services: [spec] },
    });
    this.bed.got(this.controlPlane, "servicesDefined");
  }

  /** A registered server of service "world". */
  server(
    serverId: string,
    options: RegisterOptions = {},
  ): { readonly peer: PeerId; readonly incarnation: bigint; readonly secret: Uint8Array } {
    const peer = this.bed.connect(Role.SERVER);
    const secret = options.secret ?? Uint8Array.from({ length: 16 }, (_, index) => peer + index);
    this.register(peer, serverId, { ...options, secret });
    const { incarnation } = this.bed.got(peer, "registered");
    return { peer, incarnation, secret };
  }

  register(peer: PeerId, serverId: string, options: RegisterOptions = {}): void {
    this.bed.send(peer, {
      case: "register",
      value: {
        requestId: this.bed.nextRequestId(),
        service: "world",
        serverId,
        address: `10.0.0.1:${8000 + peer}`,
        guarded: true,
        secret: Uint8Array.from({ length: 16 }, (_, index) => peer + index),
        ...options,
      },
    });
  }

  /** A proxy that has applied its first feed and holds a feed lease. */
  proxy(hello: Partial<FrameOf<"hello">> = {}): PeerId {
    const peer = this.bed.connect(Role.PROXY, hello);
    this.renewFeed(peer);
    this.bed.got(peer, "feedLease");
    return peer;
  }

  /** Acknowledges everything that is published. */
  renewFeed(peer: PeerId): void {
    const dropped = this.bed.machine.stats().feedRevision;
    this.bed.send(peer, { case: "renewFeedLease", value: { nonce: 1, dropped } });
  }

  resolve(peer: PeerId, key: string): FrameOf<"resolved"> {
    this.askFor(peer, key);
    return this.bed.got(peer, "resolved");
  }

  askFor(peer: PeerId, key: string): void {
    this.bed.send(peer, {
      case: "resolve",
      value: { requestId: this.bed.nextRequestId(), service: "world", key },
    });
  }

  renew(server: { readonly peer: PeerId; readonly incarnation: bigint }): void {
    this.bed.send(server.peer, {
      case: "renewServerLease",
      value: { nonce: 7, incarnation: server.incarnation },
    });
  }
}
