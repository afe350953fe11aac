import { BelayError, type Logger, type Service } from "@belay/model";
import {
  AdsServer,
  type AdsServerCounters,
  createSnapshot,
  edgeListeners,
  translateEdge,
  waitingRoomEndpoint,
  type EdgeOptions,
  type ModuleLocation,
  type PerProxy,
  type ProxyStatus,
} from "@belay/xds";
import type { EndpointBook } from "./coordinator/endpoint-book.ts";

export interface PublisherOptions {
  readonly pool: string;
  readonly module: ModuleLocation | null;
  readonly accessLog: EdgeOptions["accessLog"];
  readonly endpoints: EndpointBook;
  readonly logger: Logger;
}

/**
 * Services and their servers to the proxies of a pool, by delta ADS. A service's endpoints are held
 * until the coordinator's first complete snapshot: proxies keep those they have (xDS rule 7).
 */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #ads: AdsServer;
  #listeners: { readonly key: string; readonly perProxy: PerProxy } | undefined;
  #services: readonly Service[] = [];
  /** Name → guarded, as proxies were told. */
  #told: ReadonlyMap<string, boolean> = new Map();
  #serving = false;
  #alarm = "";

  constructor(options: PublisherOptions) {
    this.#options = options;
    const { logger, module } = options;
    this.#ads = new AdsServer({
      logger,
      ...(module === null ? {} : { lastEndpoint: waitingRoomEndpoint() }),
    });
  }

  /** Answers the port. Rejects with `port-in-use`. */
  async listen(host: string, port: number): Promise<number> {
    try {
      return await this.#ads.listen(host, port);
    } catch (cause) {
      throw new BelayError("port-in-use", `xDS cannot listen on ${host}:${port}`, { cause });
    }
  }

  /** False: nothing was published yet, proxies are not answered. */
  get serving(): boolean {
    return this.#serving;
  }

  /** Not empty: why the proxies do not get what was published last. */
  get alarm(): string {
    return this.#alarm;
  }

  proxies(): readonly ProxyStatus[] {
    return this.#ads.status();
  }

  counters(): AdsServerCounters {
    return this.#ads.counters();
  }

  /** These are all services from now on; proxies hear of it within 100 ms. */
  publish(services: readonly Service[]): void {
    const { pool, logger } = this.#options;
    this.#services = services;
    const agreed = services.map((service) => withGuard(service, this.#guardOf(service)));
    try {
      const { module, accessLog } = this.#options;
      const options: EdgeOptions = { module, accessLog };
      const snapshot = createSnapshot(translateEdge(agreed, options));
      for (const { name } of services) this.#sendEndpoints(name);
      this.#ads.setSnapshot(pool, snapshot, this.#listenersOf(options));
      this.#alarm = "";
      this.#serving = true;
    } catch (cause) {
      this.#alarm = `the services cannot be translated: ${String(cause)}`;
      logger.error({ why: this.#alarm }, "proxies keep what they have");
      return;
    }
    const told = new Map(services.map((service) => [service.name, this.#guardOf(service)]));
    for (const name of this.#told.keys()) {
      if (!told.has(name)) this.#ads.removeEndpoints(pool, name);
    }
    this.#told = told;
  }

  /** The coordinator's feed says something new of these services. */
  serversChanged(names: ReadonlySet<string>): void {
    for (const name of names) {
      if (!this.#told.has(name)) continue;
      try {
        this.#sendEndpoints(name);
      } catch (cause) {
        this.#options.logger.error({ service: name, why: String(cause) }, "endpoints not sent");
      }
    }
    const changed = this.#services.some(
      (service) =>
        names.has(service.name) && this.#told.get(service.name) !== this.#guardOf(service),
    );
    if (changed) this.publish(this.#services);
  }

  /** Ends all streams; proxies keep what they hold. */
  close(): Promise<void> {
    return this.#ads.close();
  }

  /**
   * Proxies and coordinator must agree on who admits: the coordinator's word counts, as it refuses a
   * change while servers live that were registered the other way.
   */
  #guardOf({ name, ownership }: Service): boolean {
    return this.#options.endpoints.services.get(name) ?? ownership.guard !== "none";
  }

  #sendEndpoints(service: string): void {
    const { endpoints, pool } = this.#options;
    if (endpoints.complete) this.#ads.setEndpoints(pool, service, endpoints.addressesOf(service));
  }

  #listenersOf(options: EdgeOptions): PerProxy {
    const key = options.accessLog;
    if (this.#listeners?.key !== key) this.#listeners = { key, perProxy: edgeListeners(options) };
    return this.#listeners.perProxy;
  }
}

function withGuard(service: Service, guarded: boolean): Service {
  if (guarded === (service.ownership.guard !== "none")) return service;
  return { ...service, ownership: { ...service.ownership, guard: guarded ? "sdk" : "none" } };
}
