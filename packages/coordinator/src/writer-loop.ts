import { setTimeout as delay } from "node:timers/promises";
import type { Clock, Logger } from "@belay/model";
import type { Batch, Coordinator, CoordinatorEvent, Effect, Store } from "@belay/ownership";
import { BadFrame, encodeFrame, type FrameBodyInit } from "@belay/protocol";
import type { CoordinatorMetrics } from "./metrics.ts";
import type { Peers } from "./peers.ts";

/** Events waiting for a commit beyond which peers are not read, and below which they are again. */
const WAITING_EVENTS_HIGH = 50_000;
const WAITING_EVENTS_LOW = 10_000;
/** Commits, and time for each, that a stopping coordinator still waits for. */
const STOP_COMMITS_MAX = 10;
const STOP_COMMIT_MS_MAX = 5000;
/** setTimeout's range; a longer wait is cut and asked again. */
const TIMER_MS_MAX = 60_000;

export interface WriterLoopOptions {
  readonly machine: Coordinator;
  readonly store: Store;
  readonly peers: Peers;
  readonly metrics: CoordinatorMetrics;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The machine said that this process must end; nothing more is sent. */
  onExit(exit: Extract<Effect, { type: "exit" }>): void;
}

/**
 * Drives the ownership machine: all events of one turn of the event loop are handled together, then
 * its effects are carried out in order. While a commit runs, later turns stage the next (T2).
 */
export class WriterLoop {
  readonly #options: WriterLoopOptions;
  #turnDue: NodeJS.Immediate | undefined;
  #wakeTimer: NodeJS.Timeout | undefined;
  #commit: Promise<void> | undefined;
  #stopped = false;

  constructor(options: WriterLoopOptions) {
    this.#options = options;
    this.handle({ type: "tick" });
  }

  handle(event: CoordinatorEvent): void {
    if (this.#stopped) return;
    this.#options.machine.handle(event);
    this.#turnDue ??= setImmediate(() => this.#turn());
  }

  /**
   * Carries out what is due and waits for its commits, so that what has ended is stored as ended;
   * then handles nothing more.
   */
  async stop(): Promise<void> {
    this.handle({ type: "tick" });
    for (let commits = 0; commits < STOP_COMMITS_MAX && !this.#stopped; commits += 1) {
      this.#turn();
      if (this.#commit === undefined) break;
      await Promise.race([this.#commit, delay(STOP_COMMIT_MS_MAX, undefined, { ref: false })]);
    }
    this.#halt();
  }

  #halt(): void {
    this.#stopped = true;
    clearImmediate(this.#turnDue);
    clearTimeout(this.#wakeTimer);
  }

  #turn(): void {
    this.#turnDue = undefined;
    const { machine, metrics } = this.#options;
    const startedMs = performance.now();
    for (const effect of machine.take()) {
      if (this.#stopped) return;
      this.#carryOut(effect);
    }
    metrics.turnTook(performance.now() - startedMs);
    this.#balanceReading();
    this.#wakeLater();
  }

  #carryOut(effect: Effect): void {
    const { peers, metrics, logger } = this.#options;
    switch (effect.type) {
      case "send":
        metrics.sent(effect.frame);
        peers.send(effect.peer, this.#encode(effect.frame));
        break;
      case "broadcast":
        this.#broadcast(effect.peers, effect.frame);
        break;
      case "close":
        logger.info({ peer: effect.peer, reason: effect.reason }, "peer closed");
        peers.close(effect.peer);
        break;
      case "commit":
        this.#commit = this.#write(effect.batch);
        break;
      case "exit":
        this.#halt();
        peers.destroyAll();
        this.#options.onExit(effect);
        break;
    }
  }

  /** An answer too long for a frame becomes a problem for who asked, not the end of everybody. */
  #encode(frame: FrameBodyInit): Buffer {
    try {
      return encodeFrame(frame);
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error;
      this.#options.logger.error({ frame: frame.case }, error.message);
      const requestId = "requestId" in frame.value ? (frame.value.requestId ?? 0) : 0;
      const value = { code: "internal", message: error.message, requestId };
      return encodeFrame({ case: "problem", value });
    }
  }

  /** One buffer, the same bytes to all. */
  #broadcast(to: readonly number[], frame: FrameBodyInit): void {
    if (to.length === 0) return;
    this.#options.metrics.broadcast(frame);
    const wire = encodeFrame(frame);
    for (const peer of to) this.#options.peers.send(peer, wire);
  }

  async #write(batch: Batch): Promise<void> {
    const startedMs = performance.now();
    const outcome = await this.#options.store.commit(batch);
    this.#commit = undefined;
    this.#options.metrics.commitTook(performance.now() - startedMs, outcome.outcome);
    if (outcome.outcome !== "committed") {
      this.#options.logger.error({ ...outcome }, "commit");
    }
    this.handle({ type: "committed", outcome });
  }

  /** Resolves that wait for the store must not pile up: what is not read costs nothing here. */
  #balanceReading(): void {
    const { waitingEvents, pendingResolves } = this.#options.machine.stats();
    const waiting = waitingEvents + pendingResolves;
    if (waiting > WAITING_EVENTS_HIGH) this.#options.peers.holdReading(true);
    else if (waiting < WAITING_EVENTS_LOW) this.#options.peers.holdReading(false);
  }

  #wakeLater(): void {
    clearTimeout(this.#wakeTimer);
    const dueMs = this.#options.machine.wakeAt() - this.#options.clock.now();
    if (dueMs === Number.POSITIVE_INFINITY) return;
    const waitMs = Math.min(Math.max(dueMs, 0), TIMER_MS_MAX);
    this.#wakeTimer = setTimeout(() => this.handle({ type: "tick" }), Math.ceil(waitMs));
  }
}
