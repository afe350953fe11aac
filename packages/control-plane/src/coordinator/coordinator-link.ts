import {
  BelayError,
  isErrorCode,
  type Clock,
  type Logger,
  type Random,
  type Service,
} from "@belay/model";
import {
  type AskInit,
  CoordinatorConnection,
  type CoordinatorAddress,
  type FeedBatch,
  RequestFailed,
  Role,
  type Welcome,
} from "@belay/protocol";
import { EndpointBook } from "./endpoint-book.ts";
import { type ServiceSpecInit, toServiceSpec } from "./service-spec.ts";

/** Definitions that the coordinator refused are offered again this often. */
const offerAgainMs = 5000;
/** A feed with a gap is not asked for again at once, lest a broken one become a hot loop. */
const freshFeedMs = 1000;

export interface CoordinatorLinkOptions {
  readonly address: CoordinatorAddress;
  readonly token?: string;
  readonly name: string;
  readonly software: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** The feed's first complete snapshot of a connection was applied. */
  onLive(): void;
  /** Servers or facts of these services may differ now. */
  onServers(services: ReadonlySet<string>): void;
}

export interface CoordinatorLinkStatus {
  readonly connected: boolean;
  readonly address: string;
  /** Not empty: why there is no connection. */
  readonly problem: string;
  readonly feed: "none" | "last-known" | "live";
}

/** What the coordinator said of a service's definition. */
export interface DefinitionProblem {
  readonly code: string;
  readonly message: string;
}

/**
 * The control plane at the coordinator: defines the services, follows the feed as an observer, asks
 * for operators. Connects again for ever until `close`.
 */
export class CoordinatorLink {
  readonly book = new EndpointBook();
  readonly #options: CoordinatorLinkOptions;
  #connection: CoordinatorConnection | undefined;
  #live = false;
  #generation = "";
  #problem = "not connected yet";
  #wanted: readonly Service[] | undefined;
  /** Once wanted, then dropped for a reason. */
  readonly #dropped = new Set<string>();
  #defining: Promise<void> = Promise.resolve();
  #defined = "";
  #again: NodeJS.Timeout | undefined;
  #fresh: NodeJS.Timeout | undefined;
  #problems: ReadonlyMap<string, DefinitionProblem> = new Map();
  #closed = false;

  constructor(options: CoordinatorLinkOptions) {
    this.#options = options;
  }

  open(): void {
    const { address, name, software, clock, random, logger, token } = this.#options;
    const connection: CoordinatorConnection = new CoordinatorConnection({
      address,
      role: Role.CONTROL_PLANE,
      name,
      software,
      ...(token === undefined ? {} : { token }),
      clock,
      random,
      logger,
      resumeFrom: () => this.book.revision,
      onConnected: (welcome) => this.#connected(welcome),
      onDisconnected: ({ code, message, problemCode }) => {
        if (this.#closed) return;
        const why = problemCode === undefined ? message : `${problemCode}: ${message}`;
        if (this.#live || this.#problem !== why) logger.warn({ code, why }, "coordinator away");
        this.#live = false;
        this.#problem = why;
      },
      onFrame: (body) => {
        if (body.case === "feedBatch") this.#take(body.value);
      },
    });
    this.#connection = connection;
  }

  /** These are all services from now on; said to the coordinator now and after each reconnect. */
  define(services: readonly Service[]): void {
    for (const { name } of this.#wanted ?? []) this.#dropped.add(name);
    for (const { name } of services) this.#dropped.delete(name);
    this.#wanted = services;
    this.#defined = "";
    this.#offer();
  }

  /** Definitions that the coordinator refuses, by service. */
  get definitionProblems(): ReadonlyMap<string, DefinitionProblem> {
    return this.#problems;
  }

  /** An operator's question. Rejects with a BelayError: what the coordinator said, or that it is away. */
  async ask(question: AskInit) {
    try {
      if (this.#connection === undefined) throw new RequestFailed("not-connected", "not started");
      return await this.#connection.ask(question);
    } catch (cause) {
      throw toAskError(cause, this.#problem);
    }
  }

  status(): CoordinatorLinkStatus {
    const { host, port } = this.#options.address;
    const connected = this.#connection?.connected === true;
    const feed = this.#live ? "live" : this.book.complete ? "last-known" : "none";
    return { connected, address: `${host}:${port}`, problem: connected ? "" : this.#problem, feed };
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#again);
    clearTimeout(this.#fresh);
    this.#connection?.close();
    await this.#defining;
  }

  #connected(welcome: Welcome): void {
    this.#problem = "";
    this.book.restart();
    const generation = Buffer.from(welcome.generation).toString("hex");
    // Revisions of another store mean nothing here (T4).
    if (generation !== this.#generation) this.book.forgetRevision();
    this.#generation = generation;
    const { term, revision } = welcome;
    this.#options.logger.info({ term, revision }, "connected to the coordinator");
    this.#defined = "";
    this.#offer();
  }

  #take(batch: FeedBatch): void {
    const applied = this.book.apply(batch);
    if (!applied.ok) return this.#startAfresh(applied.why);
    if (this.book.revision > 0n && !this.#live) {
      this.#live = true;
      this.#options.logger.info({ servers: this.book.serverCount }, "following the feed");
      this.#offer();
      this.#options.onLive();
    }
    if (applied.changed.size > 0) this.#options.onServers(applied.changed);
    return undefined;
  }

  /** P2: a gap in the feed is healed by a new session with a snapshot. */
  #startAfresh(why: string): void {
    this.#options.logger.error({ why }, "the feed is broken: starting afresh");
    this.#connection?.close();
    this.#connection = undefined;
    this.#live = false;
    this.#problem = `the feed was broken: ${why}`;
    this.book.forgetRevision();
    clearTimeout(this.#fresh);
    if (!this.#closed) this.#fresh = setTimeout(() => this.open(), freshFeedMs);
  }

  #offer(): void {
    clearTimeout(this.#again);
    this.#defining = this.#defining.then(() => this.#sendDefinitions());
  }

  async #sendDefinitions(): Promise<void> {
    const connection = this.#connection;
    const services = this.#wanted;
    if (this.#closed || services === undefined || connection?.connected !== true) return;
    const specs = services.map(toServiceSpec);
    const names = new Set(services.map(({ name }) => name));
    const removed = this.#removed(names);
    const known = JSON.stringify([specs, removed]);
    if (known === this.#defined) return;
    try {
      const problems = await defineEach(connection, specs, removed);
      this.#report(problems);
      this.#problems = problems;
      this.#defined = known;
      if (problems.size > 0) this.#offerAgain();
    } catch (cause) {
      if (this.#closed) return;
      this.#options.logger.warn({ why: String(cause) }, "services are not defined yet");
      this.#offerAgain();
    }
  }

  /**
   * What the coordinator knows and nobody wants any more; only a live feed can tell. With no service
   * at all, only what was dropped knowingly: a folder that came up empty removes nothing (rule 7).
   */
  #removed(wanted: ReadonlySet<string>): string[] {
    if (!this.#live) return [];
    const isOver = (name: string): boolean =>
      !wanted.has(name) && (wanted.size > 0 || this.#dropped.has(name));
    return [...this.book.services.keys()].filter(isOver);
  }

  #offerAgain(): void {
    clearTimeout(this.#again);
    this.#again = setTimeout(() => {
      this.#defined = "";
      this.#offer();
    }, offerAgainMs);
  }

  #report(problems: ReadonlyMap<string, DefinitionProblem>): void {
    for (const [service, { code, message }] of problems) {
      if (this.#problems.get(service)?.message === message) continue;
      this.#options.logger.warn(
        { service, code, why: message },
        "the coordinator refuses a service",
      );
    }
  }
}

/** All in one frame, which is all or nothing; if refused, each on its own (xDS rule 8). */
async function defineEach(
  connection: CoordinatorConnection,
  specs: readonly ServiceSpecInit[],
  removed: readonly string[],
): Promise<Map<string, DefinitionProblem>> {
  const problems = new Map<string, DefinitionProblem>();
  try {
    await connection.defineServices([...specs], [...removed]);
    return problems;
  } catch (cause) {
    if (!(cause instanceof RequestFailed) || cause.code !== "refused") throw cause;
  }
  for (const spec of specs) {
    try {
      await connection.defineServices([spec]);
    } catch (cause) {
      if (!(cause instanceof RequestFailed) || cause.code !== "refused") throw cause;
      const code = cause.problemCode ?? "internal";
      problems.set(spec.name ?? "", { code, message: cause.message });
    }
  }
  if (removed.length > 0) await connection.defineServices([], [...removed]);
  return problems;
}

function toAskError(cause: unknown, problem: string): BelayError {
  if (!(cause instanceof RequestFailed))
    return new BelayError("internal", String(cause), { cause });
  if (cause.code === "refused") {
    const code = cause.problemCode ?? "internal";
    return new BelayError(isErrorCode(code) ? code : "internal", cause.message, { cause });
  }
  if (cause.code === "timeout") return new BelayError("timeout", cause.message, { cause });
  if (cause.code === "too-many") return new BelayError("busy", cause.message, { cause });
  const why = problem === "" ? cause.message : problem;
  return new BelayError("coordinator-unreachable", `no connection to the coordinator: ${why}`, {
    cause,
  });
}
