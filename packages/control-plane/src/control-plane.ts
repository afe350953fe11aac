import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import {
  BelayError,
  checkServiceFiles,
  linkServices,
  parseServiceFile,
  type Clock,
  type Logger,
  type Problem,
  type Random,
  type LinkResult,
  type Service,
  type ServiceFile,
} from "@belay/model";
import type { AskInit, CoordinatorAddress } from "@belay/protocol";
import type { ModuleLocation, ProxyStatus } from "@belay/xds";
import {
  CoordinatorLink,
  type CoordinatorLinkStatus,
  type DefinitionProblem,
} from "./coordinator/coordinator-link.ts";
import { LastGoodStore } from "./disk/last-good-store.ts";
import { type ControlPlaneFigures, ControlPlaneMetrics } from "./metrics.ts";
import { ProxyRejections, type ProxyRejection } from "./proxy-rejections.ts";
import { Publisher } from "./publisher.ts";
import { openBook, turnPage, type Book, type Reading } from "./source/service-book.ts";
import { ServiceFolder } from "./source/service-folder.ts";

/** Applies and removals that wait for each other. */
const changesMax = 100;

export interface ControlPlaneOptions {
  /** Belay's data folder; `control-plane/` and, without `services`, `services/` in it are used. */
  readonly data: string;
  /** A folder of the user's with service files; Belay only reads it. */
  readonly services?: string;
  readonly coordinator: CoordinatorAddress;
  readonly token?: string;
  /** Where proxies find xDS; `host` is an IP, port 0 any free one. */
  readonly xds: { readonly host: string; readonly port: number };
  readonly pool: string;
  /** Null: plain balancing without ownership, for tests of everything else. */
  readonly module: ModuleLocation | null;
  /** One JSON line per request on the proxies' stdout. */
  readonly accessLog: "off" | "hash" | "plain";
  /** Of this process, for the coordinator: "belay 0.1.0". */
  readonly software: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Wall clock for people, in milliseconds since 1970. */
  wallClock(): number;
}

export interface ControlPlaneStatus {
  readonly upMs: number;
  /** `starting`: no first complete build yet, proxies are not answered (xDS rule 7). */
  readonly state: "starting" | "serving";
  /** Not empty: what keeps new configuration from the proxies; the last good one is served. */
  readonly alarm: string;
  readonly coordinator: CoordinatorLinkStatus;
}

export interface ApplyResult {
  readonly changed: boolean;
  readonly file: string;
}

/** Problems of a service file that was to be applied; carries them all. */
export class ServiceFileRefused extends BelayError {
  readonly problems: readonly Problem[];

  constructor(message: string, problems: readonly Problem[]) {
    super("invalid-service-file", message);
    this.problems = problems;
  }
}

/**
 * Service files to proxies: reads and watches the folder, translates, serves delta ADS, defines the
 * services at the coordinator and turns its feed into endpoints. A restart serves the last good state
 * at once. Endpoints are held until the coordinator's first complete snapshot: proxies keep theirs.
 */
export class ControlPlane {
  readonly folder: ServiceFolder;
  readonly link: CoordinatorLink;
  readonly #options: ControlPlaneOptions;
  readonly #publisher: Publisher;
  readonly #metrics = new ControlPlaneMetrics(() => this.#figures());
  readonly #store: LastGoodStore;
  readonly #rejections = new ProxyRejections();
  readonly #startMs: number;
  #book: Book = openBook();
  #diskAlarm = "";
  #emptyAlarm = "";
  /** The folder was read without an alarm. */
  #hasRead = false;
  #xdsPort = 0;
  #changes: Promise<unknown> = Promise.resolve();
  #changesWaiting = 0;

  constructor(options: ControlPlaneOptions) {
    this.#options = options;
    const { data, services, logger, clock, pool, module, accessLog } = options;
    this.#startMs = clock.now();
    this.#store = new LastGoodStore(join(data, "control-plane", "last-good"), logger);
    this.folder = new ServiceFolder({
      path: services ?? join(data, "services"),
      managed: services === undefined,
      logger,
      onReading: (reading) => this.#turn(reading),
    });
    this.link = new CoordinatorLink({
      address: options.coordinator,
      ...(options.token === undefined ? {} : { token: options.token }),
      name: "control-plane",
      software: options.software,
      clock,
      random: options.random,
      logger,
      onLive: () => {
        if (!this.#publisher.serving && this.#hasRead) this.#publish();
      },
      onServers: (changed) => this.#publisher.serversChanged(changed),
    });
    const endpoints = this.link.book;
    this.#publisher = new Publisher({ pool, module, accessLog, endpoints, logger });
  }

  /** Serves what was good last, then what the folder holds. Rejects with a BelayError. */
  async start(): Promise<void> {
    const { xds, data, logger } = this.#options;
    await mkdir(join(data, "control-plane"), { recursive: true, mode: 0o700 });
    const served = await this.#store.load();
    if (served.size > 0) {
      this.#book = openBook(served);
      this.#publish();
    }
    this.#xdsPort = await this.#publisher.listen(xds.host, xds.port);
    logger.info({ port: this.#xdsPort, services: served.size }, "xDS");
    this.link.open();
    await this.folder.start();
  }

  /** Ends all streams; proxies keep what they hold. */
  async stop(): Promise<void> {
    await this.folder.close();
    await this.link.close();
    await this.#publisher.close();
  }

  /** The port that xDS listens on; 0 before `start`. */
  get xdsPort(): number {
    return this.#xdsPort;
  }

  /** Services that proxies get, sorted by name. */
  served(): readonly Service[] {
    return [...this.#book.served.values()].map(({ service }) => service);
  }

  /** What is served and what became of each file. */
  book(): Book {
    return this.#book;
  }

  /** Definitions that the coordinator refuses, by service. */
  definitionProblems(): ReadonlyMap<string, DefinitionProblem> {
    return this.link.definitionProblems;
  }

  proxies(): readonly ProxyStatus[] {
    return this.#publisher.proxies();
  }

  /** What connected proxies refuse now. */
  rejections(): readonly ProxyRejection[] {
    return this.#rejections.of(this.proxies(), this.#options.wallClock());
  }

  status(): ControlPlaneStatus {
    const alarms = [this.#publisher.alarm, this.#book.alarm, this.#emptyAlarm, this.#diskAlarm];
    return {
      upMs: Math.round(this.#options.clock.now() - this.#startMs),
      state: this.#publisher.serving ? "serving" : "starting",
      alarm: alarms.find((it) => it !== "") ?? "",
      coordinator: this.link.status(),
    };
  }

  /** An operator's question to the coordinator. Rejects with a BelayError. */
  ask(question: AskInit): ReturnType<CoordinatorLink["ask"]> {
    return this.link.ask(question);
  }

  /** Prometheus text. */
  metrics(): Promise<string> {
    return this.#metrics.text();
  }

  /** What `apply` would say of these files together; changes nothing. */
  check(files: readonly ServiceFile[]): LinkResult {
    return checkServiceFiles(files, this.served());
  }

  /**
   * Writes a service's file if it is good, alone and beside the others; proxies get it within 100 ms
   * of the return. Rejects with ServiceFileRefused (all problems) or another BelayError.
   */
  apply(name: string, text: string, file = `${name}.yaml`): Promise<ApplyResult> {
    return this.#inTurn(async () => {
      this.folder.requireManaged();
      const parsed = parseServiceFile(text, file);
      if (!parsed.ok) throw refused(file, parsed.problems);
      if (parsed.service.name !== name) {
        const why = `${file} is for the service ${parsed.service.name}, not for ${name}`;
        throw new BelayError("name-mismatch", why);
      }
      const others = this.served().filter((service) => service.name !== name);
      const linked = linkServices([...others, parsed.service]);
      if (!linked.services.includes(parsed.service)) {
        throw refused(
          file,
          linked.problems.filter((problem) => problem.file === file),
        );
      }
      const path = this.#fileOf(name);
      const state = this.#book.files.find((it) => it.file === path);
      if (this.#book.served.get(name)?.text === text && state?.state === "serving") {
        return { changed: false, file: path };
      }
      await this.folder.write(path, text);
      return { changed: true, file: path };
    });
  }

  /** Removes a service and its file. Rejects with a BelayError. */
  remove(name: string): Promise<void> {
    return this.#inTurn(async () => {
      this.folder.requireManaged();
      const known = this.#book.served.has(name) || this.#book.files.some((it) => it.name === name);
      if (!known) throw new BelayError("service-unknown", `there is no service ${name}`);
      await this.folder.remove(name, this.#fileOf(name));
    });
  }

  #figures(): ControlPlaneFigures {
    const { files, served } = this.#book;
    const proxies = this.proxies();
    const xds = this.#publisher.counters();
    return {
      services: served.size,
      filesRefused: files.filter(({ state }) => state === "refused").length,
      filesLastGood: files.filter(({ state }) => state === "last-good").length,
      definitionsRefused: this.link.definitionProblems.size,
      alarm: this.status().alarm !== "",
      coordinatorConnected: this.link.status().connected,
      servers: this.link.book.serverCount,
      proxies: proxies.length,
      proxiesInSync: proxies.filter(({ inSync }) => inSync).length,
      nacks: this.rejections().length,
      xdsResponses: xds.responses,
      xdsBytes: xds.bytes,
      xdsRejections: xds.rejections,
      xdsStreamsRefused: xds.refusedStreams,
    };
  }

  #fileOf(name: string): string {
    return this.#book.files.find((it) => it.name === name)?.file ?? this.folder.fileOf(name);
  }

  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    if (this.#changesWaiting >= changesMax) {
      return Promise.reject(new BelayError("busy", `${changesMax} changes wait already`));
    }
    this.#changesWaiting += 1;
    const done = this.#changes.then(change).finally(() => {
      this.#changesWaiting -= 1;
    });
    this.#changes = done.catch(() => undefined);
    return done;
  }

  async #turn(reading: Reading): Promise<void> {
    const { logger } = this.#options;
    const before = this.#book;
    this.#book = turnPage(before, reading);
    this.#tell(before, this.#book);
    // Without a first good reading there is nothing to serve; an empty folder is one.
    if (this.#book.alarm !== "" && this.#book.served.size === 0) return;
    this.#hasRead = true;
    this.#publish();
    try {
      await this.#store.save(this.#book.served);
      this.#diskAlarm = "";
    } catch (cause) {
      this.#diskAlarm = `the last good state cannot be kept on disk: ${String(cause)}`;
      logger.error({ why: this.#diskAlarm }, "control plane");
    }
  }

  #tell(before: Book, after: Book): void {
    const { logger } = this.#options;
    if (after.alarm !== "" && after.alarm !== before.alarm) {
      logger.error({ why: after.alarm }, "service files: the last good state stays");
    }
    const told = new Set(before.files.flatMap(({ problems }) => problems.map(keyOf)));
    for (const { problems } of after.files) {
      for (const problem of problems) {
        const { file, line, column, path, what, fix } = problem;
        if (told.has(keyOf(problem))) continue;
        logger.warn({ at: `${file}:${line}:${column}`, member: path, fix }, what);
      }
    }
    for (const [name, { text }] of after.served) {
      if (before.served.get(name)?.text !== text) logger.info({ service: name }, "service changed");
    }
    for (const name of before.served.keys()) {
      if (!after.served.has(name)) logger.info({ service: name }, "service removed");
    }
  }

  #publish(): void {
    const services = this.served();
    if (services.length === 0 && !this.#mayBeEmpty()) return;
    this.#emptyAlarm = "";
    this.#publisher.publish(services);
    this.link.define(services);
  }

  /**
   * Rule 7, for a start with neither files nor a last good state: if the coordinator knows services,
   * something was lost, and proxies that have them must keep them. Without its word, wait for it.
   */
  #mayBeEmpty(): boolean {
    if (this.#publisher.serving) return true;
    const { complete, services } = this.link.book;
    if (!complete) return false;
    if (services.size === 0) return true;
    const names = [...services.keys()].slice(0, 5).join(", ");
    this.#emptyAlarm = `${this.folder.path} has no service file, but the coordinator knows ${services.size} services (${names}): proxies are not told until there is one`;
    this.#options.logger.error({ why: this.#emptyAlarm }, "service files");
    return false;
  }
}

const keyOf = ({ file, line, column, what }: Problem): string =>
  `${file}:${line}:${column}:${what}`;

function refused(file: string, problems: readonly Problem[]): ServiceFileRefused {
  const count = problems.length === 1 ? "one problem" : `${problems.length} problems`;
  return new ServiceFileRefused(`${file} has ${count}; nothing was changed`, problems);
}

/** A control plane, not yet started. */
export const createControlPlane = (options: ControlPlaneOptions): ControlPlane =>
  new ControlPlane(options);
