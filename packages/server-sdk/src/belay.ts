import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import type { Clock, Logger, Random } from "@belay/model";
import type { CoordinatorAddress } from "@belay/protocol";
import type { WebSocketServer } from "ws";
import { Gate, type GateChange, type GateOptions } from "./gate.ts";
import { createHttpHandler, type RequestHandler } from "./http-handler.ts";
import type { Reply, Request } from "./http-types.ts";
import type { RequestContext } from "./request-context.ts";
import { type AcquireHook, type ReleaseHook, ShardHooks } from "./shard-hooks.ts";
import { attachWebSocket, type SocketHandler } from "./web-socket.ts";

const SOFTWARE = "belay-server-sdk 0.1.0";
/** How long the coordinator may take to confirm that this server has left. */
const LEAVE_MS_MAX = 2000;
/** How often a drain looks whether there is still somebody to move its keys. */
const DRAIN_CHECK_MS = 200;
/** A server that has left goes on refusing until nobody has asked for so long, and how long at most. */
const QUIET_MS = 100;
const QUIET_MS_MAX = 1000;

export interface BelayOptions {
  readonly coordinator: CoordinatorAddress;
  readonly token: string;
  readonly session: GateOptions["session"];
  readonly drainMsMax: number;
  readonly releaseMsMax: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

interface Refused {
  readonly code: string;
  readonly message: string;
}

/** This process as a server of one service. Made by `connect`. */
export class Belay {
  readonly serverId: string;
  readonly service: string;
  readonly #options: BelayOptions;
  readonly #hooks: ShardHooks;
  readonly #gate: Gate;
  readonly #contexts = new WeakMap<object, RequestContext>();
  readonly #first = Promise.withResolvers<Refused | undefined>();
  readonly #drained = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();
  #stopping: Promise<void> | undefined;

  constructor(options: BelayOptions) {
    this.#options = options;
    this.serverId = options.session.serverId;
    this.service = options.session.service;
    this.#hooks = new ShardHooks(options.logger, options.releaseMsMax);
    this.#gate = new Gate({
      ...options,
      software: SOFTWARE,
      hooks: this.#hooks,
      onChange: (change) => this.#changed(change),
    });
  }

  /** This life of the server; 0n while it is not registered. */
  get incarnation(): bigint {
    return this.#gate.session.incarnation;
  }

  /** Keys held now. */
  get heldKeys(): number {
    return this.#gate.session.heldShards;
  }

  /** Milliseconds for which this server may act without hearing from the coordinator. */
  get leaseLeftMs(): number {
    return this.#gate.session.leaseLeftMs;
  }

  /**
   * The epoch at which this server may act for `key` now, 0n if it may not. For work outside of
   * requests (ticks, timers): ask in the same turn as the act.
   */
  epochOf(key: string): bigint {
    return this.#gate.session.leaseLeftMs > 0 ? this.#gate.session.epochOf(key) : 0n;
  }

  /**
   * A "request" listener for node:http (and node:http2): what is not this server's is refused before
   * `handle` is called; an answer goes out only while the key is owned.
   */
  handler<Req extends Request = IncomingMessage, Res extends Reply = ServerResponse>(
    handle: RequestHandler<Req, Res>,
  ): (request: Req, reply: Res) => void {
    return createHttpHandler({
      gate: this.#gate,
      logger: this.#options.logger,
      contexts: this.#contexts,
      handle,
    });
  }

  /** What `handler` was told about a request, for code that gets only the request. */
  contextOf(request: Request): RequestContext | undefined {
    return this.#contexts.get(request);
  }

  /**
   * WebSockets of `sockets` (a `ws` server made with `noServer: true`) on `server`: refused at the
   * handshake, checked at each message, closed with 4421 after the message in hand when the key moves.
   */
  attachWebSocket(server: Server, sockets: WebSocketServer, handle: SocketHandler): void {
    attachWebSocket({
      gate: this.#gate,
      logger: this.#options.logger,
      server,
      sockets,
      handle,
    });
  }

  /** Runs before a key's first request, which waits for it; if it fails the request is refused. */
  onAcquire(hook: AcquireHook): void {
    this.#hooks.acquireHook = hook;
  }

  /** Runs after a key's last request; the next owner starts after it, unless the reason is "lost". */
  onRelease(hook: ReleaseHook): void {
    this.#hooks.releaseHook = hook;
  }

  /**
   * Takes no new keys, serves until those it has are moved away (at most `drainMs`), then leaves.
   * Afterwards every request is refused.
   */
  async drain(): Promise<void> {
    return (this.#stopping ??= this.#stop(true));
  }

  /** Leaves at once: running requests are cut, its keys are placed elsewhere. */
  async close(): Promise<void> {
    return (this.#stopping ??= this.#stop(false));
  }

  /** On the first of `signals`: drains, then calls `then`. A second signal ends the process. */
  drainOnSignal(
    then: () => unknown,
    signals: readonly NodeJS.Signals[] = ["SIGTERM", "SIGINT"],
  ): void {
    const onSignal = (): void => {
      for (const signal of signals) process.off(signal, onSignal);
      void this.drain().then(then);
    };
    for (const signal of signals) process.on(signal, onSignal);
  }

  /** For `connect`: undefined once registered, or why that will never be. */
  async registered(): Promise<Refused | undefined> {
    return this.#first.promise;
  }

  async #stop(gently: boolean): Promise<void> {
    if (gently) {
      this.#gate.drain();
      const moved = await within(this.#movedOrNobodyToMove(), this.#options.drainMsMax);
      if (!moved) {
        const fields = { heldKeys: this.heldKeys, drainMsMax: this.#options.drainMsMax };
        this.#options.logger.warn(fields, "not all keys moved away in time: leaving with them");
      }
    }
    this.#gate.cut();
    await this.#hooks.allReleased();
    this.#gate.leave();
    // Without the coordinator nobody confirms it: then the lease ends it.
    if (this.#gate.connected) await within(this.#ended.promise, LEAVE_MS_MAX);
    this.#gate.close();
    if (gently) await this.#quiet();
  }

  /**
   * An edge that has not heard of it yet still sends here. A refusal lets it send again elsewhere; a
   * connection reset by the end of the process would be a failed request.
   */
  async #quiet(): Promise<void> {
    const { clock } = this.#options;
    const deadline = clock.now() + QUIET_MS_MAX;
    let before: number;
    do {
      before = this.#gate.entered;
      await pause(QUIET_MS);
      // What came while this process was stalled is read first.
      await nextTurn();
    } while (this.#gate.entered !== before && clock.now() < deadline);
  }

  /** While the coordinator is away nothing moves: there is no use in waiting longer than the lease. */
  async #movedOrNobodyToMove(): Promise<boolean> {
    for (;;) {
      if (await within(this.#drained.promise, DRAIN_CHECK_MS)) return true;
      if (!this.#gate.connected && this.leaseLeftMs <= 0) return false;
    }
  }

  #changed(change: GateChange): void {
    const { logger } = this.#options;
    switch (change.type) {
      case "registered":
        logger.info({ incarnation: change.incarnation, serverId: this.serverId }, "registered");
        this.#first.resolve(undefined);
        break;
      case "expired":
        logger.warn({ ...change }, "lease over: what this server held is no longer its own");
        break;
      case "draining":
        logger.info({ remaining: change.remaining }, "draining");
        break;
      case "drained":
        this.#drained.resolve();
        break;
      case "ended":
        this.#ended.resolve();
        break;
      case "waiting":
        logger.warn({ code: change.code }, `not registered yet: ${change.message}`);
        break;
      case "refused":
        logger.error({ code: change.code }, `registration refused: ${change.message}`);
        this.#first.resolve(change);
        break;
    }
  }
}

/** What `promise` says (true for nothing); false if `ms` passed first. */
async function within(promise: Promise<boolean | void>, ms: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(() => resolve(false), ms);
  const result = await Promise.race([promise.then((value) => value ?? true), late]);
  clearTimeout(timer);
  return result;
}
