import type { Clock, Logger, Random } from "@belay/model";
import {
  type CoordinatorAddress,
  CoordinatorConnection,
  DeathProof,
  type FrameBody,
  type Registered,
  RequestFailed,
  Role,
} from "@belay/protocol";
import { HeldShards } from "./held-shards.ts";

const SECRET_BYTES = 32;
const RETRY_MS = 1000;
const FAREWELL_MS_MAX = 5000;
/** A first refusal may be a matter of moments: the control plane has not yet named the service. */
const UNKNOWN_SERVICE_MS_MAX = 5000;
/** What held the id or address before must end first (S7): a lease, and the proxies' after it. */
const TAKEN_MS_MAX = 120_000;

/** Who an incarnation is, for whoever speaks for it later. */
export interface Incarnation {
  readonly incarnation: bigint;
  readonly secret: Uint8Array;
}

export interface RegistrationOptions {
  readonly coordinator: CoordinatorAddress;
  readonly token?: string;
  readonly service: string;
  readonly serverId: string;
  /** "ip:port" as proxies dial it. */
  readonly address: string;
  readonly zone: string;
  readonly capacity: number;
  /** The incarnation that this one follows (S5). */
  readonly previous?: Incarnation;
  readonly software: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Connections that are open now. */
  countConnections(): number;
  /** False: the lease is not renewed, because the server does not answer. */
  isHealthy(): boolean;
  onRegistered(as: Incarnation): void;
  /** Told so by the coordinator: the incarnation has ended (S8). */
  onExpired(reason: string): void;
  /** The lease has run out while the coordinator was silent; it may still be renewed (P1, S8). */
  onSilent(): void;
  /** It will not be registered; nothing more follows. */
  onRefused(code: string, message: string): void;
  onDrainProgress(remaining: number): void;
}

/**
 * Registers an unguarded server and keeps its lease (S1, S2) until it leaves. Goes on for ever
 * while the coordinator is away.
 */
export class Registration {
  readonly #options: RegistrationOptions;
  readonly #connection: CoordinatorConnection;
  readonly #secret: Uint8Array;
  readonly #held = new HeldShards();
  readonly #sentMs = new Map<number, number>();
  readonly #bornMs: number;
  #current: Registered | undefined;
  #nonce = 0;
  #deadlineMs = 0;
  /** Since when the coordinator is away; undefined: it is there. */
  #awaySinceMs: number | undefined;
  #silentSaid = false;
  #lossSaid = false;
  #refusalSaid = "";
  #draining = false;
  #ended = false;
  #renewTimer: NodeJS.Timeout | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #farewell: (() => void) | undefined;
  #farewellHeard = false;

  constructor(options: RegistrationOptions) {
    this.#options = options;
    this.#secret = options.random.bytes(SECRET_BYTES);
    this.#bornMs = options.clock.now();
    this.#connection = new CoordinatorConnection({
      address: options.coordinator,
      role: Role.SERVER,
      name: options.serverId,
      software: options.software,
      ...(options.token === undefined ? {} : { token: options.token }),
      clock: options.clock,
      random: options.random,
      logger: options.logger,
      onConnected: () => this.#connected(),
      onFrame: (body) => this.#take(body),
      onDisconnected: ({ message, code, problemCode }) => {
        this.#sentMs.clear();
        this.#awaySinceMs ??= options.clock.now();
        if (code === "closed" || this.#lossSaid) return;
        this.#lossSaid = true;
        const text = "no connection to the coordinator; the command goes on, and so do the tries";
        options.logger.warn({ why: message, problemCode }, text);
      },
    });
  }

  /** Undefined until it is registered. */
  get incarnation(): Incarnation | undefined {
    const current = this.#current;
    if (current === undefined) return undefined;
    return { incarnation: current.incarnation, secret: this.#secret };
  }

  get connected(): boolean {
    return this.#connection.connected;
  }

  /**
   * Nobody is there to move its shards, and no edge sends here any more: the coordinator has been away
   * for a whole lease, and edges believe what it told them for at most that long (P1).
   */
  get forsaken(): boolean {
    const { leaseMs } = this.#current ?? {};
    if (this.#awaySinceMs === undefined || leaseMs === undefined) return false;
    return this.#options.clock.now() - this.#awaySinceMs >= leaseMs;
  }

  /** M6: no new shards from here on; onDrainProgress follows until 0. Repeated after a reconnect. */
  startDrain(): void {
    this.#draining = true;
    this.#sendDrain();
  }

  /**
   * Nothing runs any more: gives everything back. Settles once that is committed, in 5 s, or at once
   * if the lease is over anyway.
   */
  async leave(): Promise<void> {
    const incarnation = this.#current?.incarnation;
    if (incarnation === undefined || this.#ended || this.forsaken) return this.close();
    return this.#sayFarewell({
      case: "leave",
      value: { incarnation, secret: this.#secret },
    });
  }

  /** S8: no process of the command is left. Settles as `leave`. */
  async died(exitStatus: number): Promise<void> {
    const incarnation = this.#current?.incarnation;
    if (incarnation === undefined || this.#ended || this.forsaken) return this.close();
    const proof = DeathProof.SUBREAPER;
    return this.#sayFarewell({
      case: "died",
      value: { incarnation, secret: this.#secret, proof, exitStatus },
    });
  }

  /** Ends the connection; the lease, if there is one, runs out by itself. */
  close(): void {
    this.#ended = true;
    clearInterval(this.#renewTimer);
    clearTimeout(this.#retryTimer);
    this.#connection.close();
  }

  async #sayFarewell(
    body: Extract<Parameters<CoordinatorConnection["send"]>[0], { case: "leave" | "died" }>,
  ): Promise<void> {
    this.#ended = true;
    clearInterval(this.#renewTimer);
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, FAREWELL_MS_MAX);
    // Said again after a reconnect, as long as nobody has heard it.
    this.#farewell = () => {
      if (this.#farewellHeard) resolve();
      else this.#connection.send(body);
    };
    this.#farewell();
    await promise;
    clearTimeout(timer);
    this.close();
  }

  #connected(): void {
    this.#awaySinceMs = undefined;
    if (this.#lossSaid) this.#options.logger.info({}, "connected to the coordinator again");
    this.#lossSaid = false;
    if (this.#farewell !== undefined) return this.#farewell();
    if (this.#ended) return undefined;
    const { incarnation } = this.#current ?? {};
    if (incarnation === undefined) return void this.#register();
    this.#connection.send({
      case: "resume",
      value: { requestId: 0, incarnation, secret: this.#secret },
    });
    return undefined;
  }

  async #register(): Promise<void> {
    const { service, serverId, address, zone, capacity, previous, logger } = this.#options;
    try {
      const registered = await this.#connection.request(
        (requestId) => ({
          case: "register",
          value: {
            requestId,
            service,
            serverId,
            address,
            zone,
            guarded: false,
            capacity,
            secret: this.#secret,
            previousIncarnation: previous?.incarnation ?? 0n,
            previousSecret: previous?.secret ?? new Uint8Array(0),
          },
        }),
        (body) => (body.case === "registered" ? body.value : undefined),
      );
      this.#registered(registered);
      this.#options.onRegistered({ incarnation: registered.incarnation, secret: this.#secret });
    } catch (error) {
      if (this.#ended || !(error instanceof RequestFailed)) return;
      if (error.code === "refused") this.#refused(error.problemCode ?? "", error.message);
      else logger.warn({ why: error.message }, "not registered yet");
    }
  }

  #refused(code: string, message: string): void {
    const { clock, logger } = this.#options;
    const waitedMs = clock.now() - this.#bornMs;
    const patienceMs =
      code === "service-unknown"
        ? UNKNOWN_SERVICE_MS_MAX
        : code === "server-id-taken" || code === "address-taken"
          ? TAKEN_MS_MAX
          : 0;
    if (waitedMs >= patienceMs) {
      this.close();
      this.#options.onRefused(code, message);
      return;
    }
    if (this.#refusalSaid !== code) logger.warn({ code }, `not registered yet: ${message}`);
    this.#refusalSaid = code;
    this.#retryTimer = setTimeout(() => {
      if (this.connected && !this.#ended) void this.#register();
    }, RETRY_MS);
  }

  #registered(registered: Registered): void {
    this.#current = registered;
    // S2 counts from before the renewal is sent; until the first is answered, from now on.
    this.#deadlineMs = this.#options.clock.now() + registered.leaseMs - registered.marginMs;
    clearInterval(this.#renewTimer);
    this.#renewTimer = setInterval(() => this.#renew(), Math.max(1, registered.leaseMs / 3));
    this.#renew();
    if (this.#draining) this.#sendDrain();
  }

  #renew(): void {
    const { clock, logger } = this.#options;
    const incarnation = this.#current?.incarnation ?? 0n;
    const nowMs = clock.now();
    if (nowMs > this.#deadlineMs && !this.#silentSaid) {
      this.#silentSaid = true;
      this.#options.onSilent();
    }
    if (!this.#options.isHealthy()) {
      logger.warn({}, "the server does not answer its health check: its lease is not renewed");
      return;
    }
    this.#nonce = (this.#nonce + 1) % 0xffff_ffff;
    const openStreams = this.#options.countConnections();
    const load = { requestsPerSecond: 0, openStreams, shards: this.#held.size };
    const nonce = this.#nonce;
    this.#sentMs.set(nonce, nowMs);
    const body = { case: "renewServerLease", value: { nonce, incarnation, load } } as const;
    if (!this.#connection.send(body)) this.#sentMs.delete(nonce);
  }

  #sendDrain(): void {
    const incarnation = this.#current?.incarnation;
    if (incarnation === undefined) return;
    this.#connection.send({ case: "startDrain", value: { incarnation } });
  }

  #take(body: FrameBody): void {
    if (body.case === "registered") {
      this.#registered(body.value);
      this.#releaseAgain();
    } else if (body.case === "serverLease") this.#renewed(body.value.nonce);
    else if (body.case === "grant") this.#held.granted(body.value.shards);
    else if (body.case === "revoke" || body.case === "askRelease") {
      // The proxies have cut, or are cutting, what runs there (M2, M4): nothing is left to wait for.
      const { incarnation, shards } = body.value;
      this.#held.released(shards);
      this.#connection.send({ case: "release", value: { incarnation, shards } });
    } else if (body.case === "releaseAck") this.#held.acknowledged(body.value.shards);
    else if (body.case === "drainProgress") this.#options.onDrainProgress(body.value.remaining);
    else if (body.case === "serverEnded") {
      this.#farewellHeard = true;
      this.#farewell?.();
    } else if (body.case === "serverExpired") this.#expired(body.value.reason);
    else if (body.case === "problem") {
      this.#options.logger.warn({ code: body.value.code }, body.value.message);
    }
  }

  /** M3: a release is repeated until it is acknowledged. */
  #releaseAgain(): void {
    const incarnation = this.#current?.incarnation;
    const shards = this.#held.unacknowledged();
    if (incarnation === undefined || shards.length === 0) return;
    this.#connection.send({ case: "release", value: { incarnation, shards } });
  }

  #renewed(nonce: number): void {
    const sentMs = this.#sentMs.get(nonce);
    const current = this.#current;
    if (sentMs === undefined || current === undefined) return;
    this.#sentMs.clear();
    this.#deadlineMs = sentMs + current.leaseMs - current.marginMs;
    this.#silentSaid = false;
  }

  #expired(reason: string): void {
    if (this.#farewell !== undefined) {
      this.#farewellHeard = true;
      this.#farewell();
      return;
    }
    if (this.#ended) return;
    this.close();
    this.#options.onExpired(reason);
  }
}
