import { Role } from "@belay/protocol";
import type { FrameBody, FrameCase } from "@belay/protocol";
import type { CommitOutcome } from "../store.ts";
import { Core } from "./core.ts";
import type {
  Coordinator,
  CoordinatorConfig,
  CoordinatorEvent,
  CoordinatorStats,
  Effect,
  LoadedState,
  PeerId,
} from "./event.ts";
import { dispatch } from "./dispatch.ts";
import { loadRows } from "./load.ts";
import { connect, disconnect, hello, holdLeftMs } from "./peers.ts";
import { problemFrame } from "./problem.ts";
import { sendProgress } from "./register.ts";
import { extendLeases } from "./server-lease.ts";
import { Staging } from "./staging.ts";
import type { Batch } from "../store.ts";

/** While servers are registered, the machine wants to be run at least so often. */
const PULSE_MS = 1_000;
/** Run later than that by so much, the process was stopped: what was sent meanwhile is still unread. */
const STALL_MS = 1_000;
/** Pause before a batch whose outcome is not known is sent again (T3). */
const RESEND_MS = 50;
const LEASE_MS_DEFAULT = 15_000;
const GRANT_SHARDS_MAX = 1_000;

type ExitCode = Extract<Effect, { type: "exit" }>["code"];
type UndecidedOutcome = Extract<CommitOutcome, { outcome: "failed" | "unknown" }>;

interface Flight {
  readonly staging: Staging;
  readonly batch: Batch;
  readonly startedAt: number;
  /** An outcome came that was not final; at `resendAt` the same batch goes again. */
  resendAt: number | undefined;
}

/** Takes over what `loaded` holds: S4 and P6 count from here. */
export function createCoordinator(config: CoordinatorConfig, loaded: LoadedState): Coordinator {
  return new CoordinatorMachine(config, loaded);
}

/**
 * One writer. While a commit runs, events wait; then they are handled one after the other against
 * what is committed, and what they stage is the next batch. Answers leave after the batch that they
 * belong to, in this order: grants, feed, answers (T2).
 */
class CoordinatorMachine implements Coordinator {
  readonly #core: Core;
  #flight: Flight | undefined;
  #waiting: CoordinatorEvent[] = [];
  #tickWaits = false;
  #exited = false;
  #handledAt: number;

  constructor(config: CoordinatorConfig, loaded: LoadedState) {
    this.#core = new Core(config, loaded);
    loadRows(this.#core, loaded.rows);
    this.#handledAt = this.#core.now();
  }

  handle(event: CoordinatorEvent): void {
    if (this.#exited) return;
    this.#noticeStall();
    if (event.type === "committed") this.#committed(event.outcome);
    else if (event.type === "tick" && this.#flight !== undefined) this.#tickInFlight();
    else if (this.#flight === undefined) this.#process(event);
    else this.#wait(event);
  }

  take(): readonly Effect[] {
    const core = this.#core;
    if (this.#flight === undefined && core.staging.dirty && !this.#exited) this.#commit();
    const { effects } = core;
    core.effects = [];
    return effects;
  }

  wakeAt(): number {
    if (this.#exited) return Number.POSITIVE_INFINITY;
    if (this.#flight === undefined) {
      const next = this.#core.due.next();
      return this.#core.servers.size > 0 ? Math.min(next, this.#handledAt + PULSE_MS) : next;
    }
    return this.#flight.resendAt ?? Number.POSITIVE_INFINITY;
  }

  stats(): CoordinatorStats {
    const core = this.#core;
    return {
      ...core.counters,
      term: core.term,
      revision: core.revision,
      feedRevision: core.feed.last,
      services: core.services.size,
      servers: core.servers.size,
      shards: core.shardCount,
      proxies: core.proxies.size,
      peers: core.peers.size,
      moving: core.moving.size,
      waitingEvents: this.#waiting.length,
      pendingResolves: core.pendingResolves,
      holdLeftMs: holdLeftMs(core),
    };
  }

  /** S4: a process that was stopped (suspend, SIGSTOP) is like one that restarted. */
  #noticeStall(): void {
    const core = this.#core;
    const now = core.now();
    const stalledMs = now - this.#handledAt - PULSE_MS;
    this.#handledAt = now;
    if (core.servers.size === 0 || stalledMs < STALL_MS) return;
    core.logger.warn(
      { stalledMs: Math.round(stalledMs) },
      "stopped for a while: no server expires",
    );
    extendLeases(core);
  }

  /** Bounded: a peer that sends more than can wait is let go; ends of connections always wait. */
  #wait(event: CoordinatorEvent): void {
    const core = this.#core;
    if (event.type === "frame" && this.#waiting.length >= core.limits.waitingEvents) {
      const peer = core.peers.get(event.peer);
      if (peer === undefined) return;
      core.send(
        peer,
        problemFrame({
          code: "busy",
          message: "the store is slow and too much waits: try again.",
          retryAfterMs: 1000,
          fatal: true,
        }),
      );
      core.close(peer, "too many events wait for the store");
      return;
    }
    this.#waiting.push(event);
  }

  #tickInFlight(): void {
    const flight = this.#flight;
    if (flight?.resendAt === undefined || flight.resendAt > this.#core.now()) {
      this.#tickWaits = true;
      return;
    }
    flight.resendAt = undefined;
    this.#core.effects.push({ type: "commit", batch: flight.batch });
  }

  #process(event: CoordinatorEvent): void {
    const core = this.#core;
    switch (event.type) {
      case "connected":
        connect(core, event.peer);
        break;
      case "disconnected":
        disconnect(core, event.peer);
        break;
      case "frame":
        this.#frame(event.peer, event.frame);
        break;
      case "tick":
        this.#runDue();
        break;
      case "committed":
        break;
    }
    this.#runTasks();
  }

  #frame(id: PeerId, frame: FrameBody): void {
    const core = this.#core;
    const peer = core.peers.get(id);
    if (peer === undefined || peer.closing) return;
    if (frame.case === "ping") {
      core.answer(() => core.send(peer, { case: "pong", value: { nonce: frame.value.nonce } }));
    } else if (frame.case === "pong") {
      return;
    } else if (peer.role === Role.UNSPECIFIED && frame.case === "hello") {
      hello(core, peer, frame.value);
    } else if (peer.role === Role.UNSPECIFIED || !dispatch(core, peer, frame)) {
      core.refuse(peer, {
        code: "bad-frame",
        message: notAllowed(frame.case, peer.role),
        fatal: true,
      });
    }
  }

  #runDue(): void {
    const core = this.#core;
    const now = core.now();
    // What is added while it runs is due at the next tick: this loop ends.
    for (let count = core.due.size; count > 0; count -= 1) {
      const run = core.due.take(now);
      if (run === undefined) return;
      run();
    }
  }

  #runTasks(): void {
    const { tasks } = this.#core;
    for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) task();
  }

  #commit(): void {
    const core = this.#core;
    const batch = core.staging.batch(core.term);
    this.#flight = { staging: core.staging, batch, startedAt: core.now(), resendAt: undefined };
    core.effects.push({ type: "commit", batch });
  }

  #committed(outcome: CommitOutcome): void {
    const flight = this.#flight;
    if (flight === undefined) return;
    switch (outcome.outcome) {
      case "committed":
        this.#apply(flight);
        return;
      case "deposed":
        this.#exit("deposed", `term ${outcome.term} has taken the store over (T1)`);
        return;
      case "failed":
      case "unknown":
        this.#undecided(flight, outcome);
        return;
    }
  }

  /** T3: no answer to anyone, the same batch again, until it is decided or L/3 has passed. */
  #undecided(flight: Flight, outcome: UndecidedOutcome): void {
    const core = this.#core;
    const leases = Array.from(core.services.values(), (service) => service.row.leaseMs);
    const shortest = Math.min(...leases, ...(leases.length === 0 ? [LEASE_MS_DEFAULT] : []));
    if (core.now() - flight.startedAt >= shortest / 3) {
      this.#exit(
        outcome.code ?? "undecided",
        `the store has not taken a commit for a third of the lease: ${outcome.message}`,
      );
      return;
    }
    flight.resendAt = core.now() + RESEND_MS;
  }

  #exit(code: ExitCode, message: string): void {
    this.#exited = true;
    this.#core.effects = [{ type: "exit", code, message }];
  }

  /** Committed: grants, feed, answers leave, then what waited is handled. */
  #apply({ staging, batch }: Flight): void {
    const core = this.#core;
    this.#flight = undefined;
    core.revision = batch.to;
    core.counters.commits += 1;
    core.staging = new Staging(core.revision);
    this.#sendGrants(staging);
    if (staging.entries.length > 0) this.#publish(staging);
    for (const answer of staging.answers) answer();
    for (const answer of core.renewals) answer();
    core.renewals = [];
    for (const server of staging.progress) sendProgress(core, server);
    this.#runTasks();
    this.#takeWaiting();
  }

  #sendGrants({ grants }: Staging): void {
    for (const [server, shards] of grants) {
      const { incarnation } = server.row;
      for (let start = 0; start < shards.length; start += GRANT_SHARDS_MAX) {
        const part = shards.slice(start, start + GRANT_SHARDS_MAX);
        const value = { incarnation, shards: part, asOf: this.#core.revision };
        this.#core.send(server.peer, { case: "grant", value });
      }
    }
  }

  #publish({ entries }: Staging): void {
    const core = this.#core;
    const previous = core.feed.last;
    core.feed.append(core.revision, entries, core.now());
    const peers = Array.from(core.peers.values()).filter((peer) => peer.following && !peer.closing);
    const value = { previous, revision: core.revision, term: core.term, entries };
    core.effects.push({
      type: "broadcast",
      peers: peers.map((peer) => peer.id),
      frame: { case: "feedBatch", value },
    });
  }

  #takeWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    if (this.#tickWaits) waiting.push({ type: "tick" });
    this.#tickWaits = false;
    for (const event of waiting) this.#process(event);
  }
}

const notAllowed = (name: FrameCase, role: number): string =>
  role === Role.UNSPECIFIED
    ? `the first frame must be Hello, not ${name}`
    : `frame ${name} is not allowed for role ${role}`;
