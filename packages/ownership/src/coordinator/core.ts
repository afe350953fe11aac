import type { Clock, Logger, Random } from "@belay/model";
import type { FrameBodyInit } from "@belay/protocol";
import type { TombstoneRow } from "../store.ts";
import { waitMs } from "../wait.ts";
import { type ClearanceOptions, ProxyClearance } from "./clearance.ts";
import { DueQueue } from "./due-queue.ts";
import type { CoordinatorConfig, Effect, LoadedState, PeerId } from "./event.ts";
import { Feed } from "./feed.ts";
import { COORDINATOR_LIMITS, type CoordinatorLimits } from "./limits.ts";
import { problemFrame, type ProblemText } from "./problem.ts";
import { Staging } from "./staging.ts";
import type { Clearance, Peer, Proxy, Server, Service, Shard } from "./state.ts";

export interface Counters {
  commits: number;
  placements: number;
  moves: number;
  expiries: number;
  renewals: number;
  storeWentBack: number;
}

/** An incarnation of an unguarded service that has ended, until the proxies are clear of it (M4). */
export interface EndedServer {
  readonly address: string;
  readonly row: TombstoneRow;
  readonly clearance: Clearance;
  /** Resolves and registrations to be taken up when it is. */
  readonly waiting: (() => void)[];
}

/** What the parts of the coordinator share: its memory, the batch being staged, and the way out. */
export class Core {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly limits: CoordinatorLimits;
  readonly config: CoordinatorConfig;
  readonly generation: Uint8Array;
  readonly term: bigint;
  readonly services = new Map<string, Service>();
  readonly servers = new Map<bigint, Server>();
  readonly peers = new Map<PeerId, Peer>();
  readonly proxies = new Map<string, Proxy>();
  /** Moves and ended incarnations whose condition on the proxies is not met yet, oldest first. */
  readonly clearances = new Set<Clearance>();
  /** Of ended incarnations of unguarded services, by incarnation; gone from here when clear. */
  readonly ended = new Map<bigint, EndedServer>();
  /** Ended incarnations of before the load that had cleared. */
  readonly cleared = new Set<bigint>();
  readonly due = new DueQueue();
  readonly feed: Feed;
  readonly counters: Counters = {
    commits: 0,
    placements: 0,
    moves: 0,
    expiries: 0,
    renewals: 0,
    storeWentBack: 0,
  };
  /** Shards on the move. */
  readonly moving = new Set<Shard>();
  /** Work that may stage, to be done right after the answers of a commit, before what waits. */
  readonly tasks: (() => void)[] = [];
  /** Answers to renewals, where a store that others can write makes them wait for a commit (S1). */
  renewals: (() => void)[] = [];
  effects: Effect[] = [];
  staging: Staging;
  /** Committed. */
  revision: bigint;
  /** End of the load, or of the lift of T4: S4 and P6 count from here. */
  loadedAt = Number.NEGATIVE_INFINITY;
  /** The store had a term before this one. */
  readonly wasUsed: boolean;
  /** S4 and P6 of the load, for people. */
  holdUntil = Number.NEGATIVE_INFINITY;
  /** T4: until then a shard without a row may be believed in by somebody. */
  freeHoldUntil = Number.NEGATIVE_INFINITY;
  pendingResolves = 0;
  /** T4: revisions between these were given by commits that the store has lost. */
  readonly lost: { readonly above: bigint; readonly upTo: bigint }[] = [];

  constructor(config: CoordinatorConfig, loaded: LoadedState) {
    this.config = config;
    this.clock = config.clock;
    this.random = config.random;
    this.logger = config.logger;
    this.limits = { ...COORDINATOR_LIMITS, ...config.limits };
    this.generation = loaded.meta.generation;
    this.term = loaded.meta.term;
    this.revision = loaded.meta.revision;
    this.feed = new Feed(
      loaded.meta.previousRevision,
      loaded.meta.revision,
      this.limits.feedEntries,
    );
    this.staging = new Staging(this.revision);
    this.wasUsed = loaded.meta.previousRevision > 0n;
  }

  now(): number {
    return this.clock.now();
  }

  /** W(x). */
  wait(promiseMs: number): number {
    return waitMs(promiseMs, this.config.marginMs, this.config.rateError);
  }

  /** Runs `answer` when all that was staged so far is committed; at once if nothing is (T2). */
  answer(answer: () => void): void {
    if (this.staging.dirty) this.staging.answers.push(answer);
    else answer();
  }

  /** Runs `task` after the next commit's answers; it may stage, which an answer never does. */
  later(task: () => void): void {
    this.answer(() => this.tasks.push(task));
  }

  /** Rows of shards, over all services. */
  get shardCount(): number {
    let count = 0;
    for (const service of this.services.values()) count += service.shards.size;
    return count;
  }

  /** Entries of one commit fit in one frame; what would be too much waits for the next. */
  get entriesFull(): boolean {
    return this.staging.entries.length >= this.limits.entriesPerBatch;
  }

  /** To be called from within an answer: what it says must be committed. */
  send(peer: Peer | undefined, frame: FrameBodyInit): void {
    if (peer === undefined || peer.closing) return;
    this.effects.push({ type: "send", peer: peer.id, frame });
  }

  refuse(peer: Peer, problem: ProblemText): void {
    this.logger.debug({ peer: peer.id, name: peer.name, code: problem.code }, problem.message);
    this.answer(() => {
      this.send(peer, problemFrame(problem));
      if (problem.fatal === true) this.close(peer, problem.code);
    });
  }

  close(peer: Peer, reason: string): void {
    if (peer.closing) return;
    peer.closing = true;
    this.effects.push({ type: "close", peer: peer.id, reason });
  }

  /** When the service's answers are no longer believed by this proxy (P1); -Infinity: already now. */
  believesUntil(proxy: Proxy, service: Service): number {
    if (proxy.renewedAt === undefined) return Number.NEGATIVE_INFINITY;
    return proxy.renewedAt + this.wait(service.row.waitFeedLeaseMs);
  }

  /** P6: from then on, M4 no longer counts proxies of the time before the load. */
  quietFrom(service: Service): number {
    return this.loadedAt + this.wait(service.row.waitFeedLeaseMs);
  }

  /** Begins to watch the proxies for a revoking entry that has just been staged. */
  watch(options: ClearanceOptions): Clearance {
    const now = this.now();
    const live = Array.from(this.proxies.values());
    const clearance = new ProxyClearance(
      options,
      live.filter((proxy) => this.believesUntil(proxy, options.service) > now),
      now,
    );
    this.clearances.add(clearance);
    if (options.quietFrom !== undefined && options.quietFrom > now) {
      this.due.add(options.quietFrom, () => clearance.timeReached());
    }
    this.#watchLeases(clearance);
    // Judged after the commit: until then its entry is not out, and nobody can acknowledge it.
    this.later(() => clearance.judge());
    return clearance;
  }

  /** `proxy` begins to believe: it counts for what is under way, unless it has acknowledged. */
  joinClearances(proxy: Proxy): void {
    for (const clearance of this.clearances) {
      if (this.believesUntil(proxy, clearance.service) > this.now()) continue;
      clearance.join(proxy);
      this.due.add(this.now() + this.wait(clearance.service.row.waitFeedLeaseMs), () =>
        this.#watchLeases(clearance),
      );
    }
  }

  /** Lets go of the proxies whose lease is over by now, and looks again when the next one is. */
  #watchLeases(clearance: Clearance): void {
    if (clearance.clear && clearance.allDropped) return;
    const now = this.now();
    let next = Number.POSITIVE_INFINITY;
    for (const proxy of Array.from(clearance.waiting())) {
      const until = this.believesUntil(proxy, clearance.service);
      if (until <= now) clearance.leave(proxy);
      else next = Math.min(next, until);
    }
    if (next < Number.POSITIVE_INFINITY) this.due.add(next, () => this.#watchLeases(clearance));
  }
}
