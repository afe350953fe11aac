import type { Clock, Logger, Random } from "@belay/model";
import {
  createServerSession,
  type Decision,
  type Refusal,
  type ServerSession,
  type ServerSessionConfig,
  type ServerSessionEffect,
} from "@belay/ownership";
import {
  CoordinatorConnection,
  type CoordinatorAddress,
  type DisconnectReason,
  Role,
} from "@belay/protocol";
import type { RequestIdentity } from "./identity.ts";
import { Outgoing } from "./outgoing.ts";
import type { ShardHooks } from "./shard-hooks.ts";
import { Visit, type Visitor } from "./visit.ts";
import { WakeTimer } from "./wake-timer.ts";

const LOAD_MS = 1000;
/** Refusals of a connection that no later try can turn. */
const FATAL_REFUSALS = new Set(["unauthorized", "unknown-version"]);

export interface GateOptions {
  readonly coordinator: CoordinatorAddress;
  readonly token: string;
  readonly software: string;
  readonly session: Omit<ServerSessionConfig, "clock" | "newSecret" | "guarded">;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly hooks: ShardHooks;
  /** Registration, loss and drain, as they happen. */
  onChange(change: GateChange): void;
}

export type GateChange =
  | { readonly type: "registered"; readonly incarnation: bigint }
  | { readonly type: "expired"; readonly incarnation: bigint; readonly reason: string }
  | { readonly type: "draining"; readonly remaining: number }
  | { readonly type: "drained" | "ended" }
  | { readonly type: "waiting" | "refused"; readonly code: string; readonly message: string };

type Effect<T extends ServerSessionEffect["type"]> = Extract<ServerSessionEffect, { type: T }>;

/**
 * Joins the server-session machine to its connection, its timers and the requests. Effects are
 * carried out in order, never nested, so that what one causes comes after all of the others.
 */
export class Gate {
  readonly session: ServerSession;
  readonly #options: GateOptions;
  readonly #connection: CoordinatorConnection;
  readonly #visits = new Map<number, Visit>();
  readonly #outgoing: Outgoing;
  readonly #wakeTimer: WakeTimer;
  readonly #loadTimer: NodeJS.Timeout;
  #lastId = 0;
  #entered = 0;
  #admitted = 0;
  #pumping = false;
  #away = false;
  #shut = false;
  #closed = false;

  constructor(options: GateOptions) {
    this.#options = options;
    const { clock, random, logger, session } = options;
    this.session = createServerSession({
      ...session,
      clock,
      guarded: true,
      newSecret: () => random.bytes(32),
    });
    this.#connection = new CoordinatorConnection({
      address: options.coordinator,
      role: Role.SERVER,
      name: session.serverId,
      software: options.software,
      token: options.token,
      clock,
      random,
      logger,
      onConnected: () => {
        this.#away = false;
        this.#handle({ type: "connected" });
      },
      onFrame: (frame) => {
        this.#handle({ type: "frame", frame });
        if (frame.case === "revoke") this.#leave(frame.value.shards);
      },
      onDisconnected: (reason) => this.#disconnected(reason),
    });
    this.#outgoing = new Outgoing((frame) => this.#connection.send(frame), options.hooks);
    this.#wakeTimer = new WakeTimer(clock, () => this.#handle({ type: "tick" }));
    this.#loadTimer = setInterval(() => this.#tellLoad(), LOAD_MS);
    this.#loadTimer.unref();
  }

  /** Requests and sockets not yet ended. */
  get visits(): number {
    return this.#visits.size;
  }

  /** Requests and handshakes that ever came: tells whether any still come. */
  get entered(): number {
    return this.#entered;
  }

  get connected(): boolean {
    return this.#connection.connected;
  }

  /** G1: one of `admitted` and `refused` follows, at once unless the coordinator must be asked. */
  enter(
    kind: "request" | "socket",
    identity: RequestIdentity | undefined,
    visitor: Visitor,
  ): Visit {
    const { session } = this;
    this.#entered += 1;
    this.#lastId = this.#lastId >= Number.MAX_SAFE_INTEGER ? 1 : this.#lastId + 1;
    const id = this.#lastId;
    const { key, incarnation } = identity ?? {};
    const onEnd = (ended: Visit): void => this.#ended(ended);
    const visit = new Visit({ id, key, incarnation, visitor, session, onEnd });
    this.#visits.set(id, visit);
    if (this.#shut) {
      this.#refuse(visit, this.#refusal("moved", visit));
      return visit;
    }
    const epoch = identity?.epoch ?? 0n;
    this.#decide(visit, session.admit({ id, kind, incarnation, key, epoch }));
    this.#pump();
    return visit;
  }

  /** M6: `drained` follows when nothing is owned any more. */
  drain(): void {
    this.#handle({ type: "drain" });
  }

  /** Ends all that runs, and lets go of all that is held: nothing is admitted after it. */
  cut(): void {
    this.#shut = true;
    for (const visit of this.#visits.values()) this.#lose(visit);
    this.#options.hooks.releaseAll("moved");
  }

  /** Ends the incarnation; `ended` follows if the coordinator answers. */
  leave(): void {
    this.#handle({ type: "leave" });
  }

  close(): void {
    this.#shut = true;
    this.#closed = true;
    this.#wakeTimer.stop();
    clearInterval(this.#loadTimer);
    for (const visit of this.#visits.values()) this.#lose(visit);
    this.#connection.close();
  }

  #handle(event: Parameters<ServerSession["handle"]>[0]): void {
    if (this.#closed) return;
    this.session.handle(event);
    this.#pump();
  }

  /** Tells what runs for these shards that they are about to move. */
  #leave(shards: readonly { key: string; epoch: bigint }[]): void {
    const epochs = new Map(shards.map(({ key, epoch }) => [key, epoch]));
    for (const visit of this.#visits.values()) {
      if (visit.stage !== "inside" || visit.key === undefined) continue;
      if (epochs.get(visit.key) === visit.epoch) visit.visitor.leaving?.();
    }
  }

  #disconnected(reason: DisconnectReason): void {
    if (this.#closed) return;
    const { code, message, problemCode } = reason;
    const { logger } = this.#options;
    // Each try to come back fails with the same words: said once.
    const level = this.#away ? "debug" : "warn";
    this.#away = true;
    logger[level]({ code, problemCode }, `coordinator away: ${message}`);
    this.#handle({ type: "disconnected" });
    if (problemCode !== undefined && FATAL_REFUSALS.has(problemCode)) {
      this.#options.onChange({ type: "refused", code: problemCode, message });
    }
  }

  #pump(): void {
    if (this.#pumping || this.#closed) return;
    this.#pumping = true;
    try {
      let effects = this.session.take();
      while (effects.length > 0) {
        for (const effect of effects) this.#carryOut(effect);
        effects = this.session.take();
      }
    } finally {
      this.#pumping = false;
    }
    this.#wakeTimer.wakeAt(this.session.wakeAt());
  }

  #carryOut(effect: ServerSessionEffect): void {
    const { hooks } = this.#options;
    switch (effect.type) {
      case "send":
        this.#outgoing.send(effect.frame);
        break;
      case "decided":
        this.#decided(effect);
        break;
      case "reset":
        this.#reset(effect);
        break;
      case "close-sockets":
        for (const id of effect.requests) this.#visits.get(id)?.visitor.leaving?.();
        break;
      case "granted":
        void hooks.acquire(effect.key, effect.epoch);
        break;
      case "given-up":
        hooks.release(effect.key, effect.epoch, "moved");
        break;
      case "expired":
        hooks.releaseAll("lost");
        this.#options.onChange(effect);
        break;
      case "registered":
      case "draining":
      case "drained":
      case "ended":
      case "waiting":
      case "refused":
        this.#options.onChange(effect);
        break;
    }
  }

  #reset({ requests, reason }: Effect<"reset">): void {
    if (requests.length === 0) return;
    const fields = { reason, requests: requests.length };
    this.#options.logger.warn(fields, "cut: this server may no longer answer them (S5, G6)");
    for (const id of requests) this.#lose(this.#visits.get(id));
  }

  #decided({ id, decision }: Effect<"decided">): void {
    const visit = this.#visits.get(id);
    if (visit !== undefined) this.#decide(visit, decision);
  }

  #decide(visit: Visit, decision: Decision): void {
    if (decision.type === "ask") return;
    if (decision.type === "refuse") {
      this.#refuse(visit, decision);
      return;
    }
    visit.epoch = decision.epoch;
    if (visit.key === undefined) {
      this.#admit(visit);
      return;
    }
    const acquired = this.#options.hooks.acquire(visit.key, decision.epoch);
    if (acquired === true) this.#admit(visit);
    else void acquired.then((succeeded) => this.#acquired(visit, succeeded));
  }

  /** The application has loaded the key, maybe long after the decision. */
  #acquired(visit: Visit, succeeded: boolean): void {
    if (visit.stage !== "waiting") return;
    if (succeeded) this.#admit(visit);
    else this.#refuse(visit, this.#refusal("not-ready", visit));
    this.#pump();
  }

  /**
   * Judges again, by the clock, right before the handler: since the decision hooks and the handlers
   * of others may have run, or the process stood still (G1). No handler ran, so it is a refusal.
   */
  #admit(visit: Visit): void {
    if (!this.session.mayAnswer(visit.id)) {
      const reason = this.session.leaseLeftMs > 0 ? "moved" : "expired";
      this.#refuse(visit, this.#refusal(reason, visit));
      return;
    }
    visit.stage = "inside";
    this.#admitted += 1;
    visit.visitor.admitted(visit);
  }

  #refuse(visit: Visit, refusal: Refusal): void {
    if (visit.stage !== "waiting") return;
    visit.end();
    visit.visitor.refused(refusal);
  }

  /** What no handler has seen yet is refused, not cut: it may be sent again. */
  #lose(visit: Visit | undefined): void {
    if (visit === undefined) return;
    if (visit.stage === "waiting") {
      this.#refuse(visit, this.#refusal("moved", visit));
    } else {
      visit.end();
      visit.visitor.lost();
    }
  }

  /** As of the epoch that is being left, so that the edge asks for a later one (R1). */
  #refusal(reason: "moved" | "expired" | "not-ready", { incarnation, epoch }: Visit): Refusal {
    const own = this.session.incarnation;
    const asOf = reason !== "not-ready" && epoch > own ? epoch : own;
    return { type: "refuse", incarnation: incarnation ?? own, asOf, reason };
  }

  #ended(visit: Visit): void {
    if (!this.#visits.delete(visit.id)) return;
    this.session.end(visit.id);
    this.#pump();
  }

  #tellLoad(): void {
    this.session.setLoad((this.#admitted * 1000) / LOAD_MS);
    this.#admitted = 0;
  }
}
