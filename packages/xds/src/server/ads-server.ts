import {
  Server,
  ServerCredentials,
  status as grpcStatus,
  type ServiceDefinition,
} from "@grpc/grpc-js";
import { typeUrls } from "@belay/envoy-api";
import type { Logger } from "@belay/model";
import { EndpointEncoder } from "../resources/endpoints.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import type { Rejection } from "../subscription/rejection.ts";
import { Debounce } from "./debounce.ts";
import { type PerProxy, Pool } from "./pool.ts";
import { type DeltaCall, ProxyStream, type ProxyStatus } from "./proxy-stream.ts";
import { decodeRequest, type ProxyNode } from "./wire-request.ts";

export interface AdsServerOptions {
  readonly logger: Logger;
  /** An encoded LbEndpoint that ends every service's list (`waitingRoomEndpoint()`). */
  readonly lastEndpoint?: Uint8Array;
  /** A proxy came, settled on what it should hold, refused something, or left. */
  readonly onProxyChange?: (status: ProxyStatus) => void;
}

/** Counters since start. */
export interface AdsServerCounters {
  readonly streams: number;
  readonly responses: number;
  readonly bytes: number;
  readonly rejections: number;
  readonly refusedStreams: number;
}

/** Streams at once; one more is told RESOURCE_EXHAUSTED (rule 10). */
const streamsMax = 4096;
const debounce = { pauseMs: 20, ceilingMs: 100 };
/** Streams written to before other work gets its turn. */
const streamsPerTurn = 64;
const shutdownMs = 1000;

const service: ServiceDefinition = {
  delta: {
    path: "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
    requestStream: true,
    responseStream: true,
    requestSerialize: (bytes: Buffer) => bytes,
    requestDeserialize: decodeRequest,
    // Responses are bytes already (rule 12).
    responseSerialize: (bytes: Buffer) => bytes,
    responseDeserialize: (bytes: Buffer) => bytes,
  },
};

interface Waiting {
  readonly snapshot: Snapshot;
  readonly perProxy: PerProxy | undefined;
}

/**
 * A delta ADS server. Proxies find their pool by their node's cluster and are served once it has a
 * snapshot. Configuration is debounced, endpoints go at once.
 */
export class AdsServer {
  readonly #options: AdsServerOptions;
  readonly #server = new Server({
    "grpc.keepalive_time_ms": 30_000,
    "grpc.keepalive_timeout_ms": 5000,
  });
  readonly #encoder: EndpointEncoder;
  readonly #pools = new Map<string, Pool>();
  readonly #streams = new Map<ProxyStream, string | undefined>();
  readonly #waiting = new Map<string, Waiting>();
  readonly #debounce = new Debounce(() => this.#applyWaiting(), debounce);
  readonly #counters = { responses: 0, bytes: 0, rejections: 0, refusedStreams: 0 };

  constructor(options: AdsServerOptions) {
    this.#options = options;
    this.#encoder = new EndpointEncoder(options.lastEndpoint);
    this.#server.addService(service, { delta: (call: DeltaCall) => this.#open(call) });
  }

  /** Listens on `host` (an IP) and answers the port; 0 takes a free one. */
  listen(host: string, port: number): Promise<number> {
    const address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    this.#server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(new Error(`xDS cannot listen on ${address}`, { cause: error }));
    });
    return promise;
  }

  /**
   * What the proxies of a pool hold from now on, within 100 ms; the first one at once. `perProxy`
   * adds what differs by proxy; left out, the one before counts on.
   */
  setSnapshot(pool: string, snapshot: Snapshot, perProxy?: PerProxy): void {
    const before = this.#waiting.get(pool)?.perProxy;
    this.#waiting.set(pool, { snapshot, perProxy: perProxy ?? before });
    this.#debounce.call();
    if (!this.#pool(pool).ready) this.#debounce.flush();
  }

  /**
   * A service's endpoints, `IP:port` each, at once. Until this is called for a service of the pool
   * nothing is said of its endpoints: proxies keep those they have (rule 7). Throws on a bad address.
   */
  setEndpoints(pool: string, serviceName: string, addresses: Iterable<string>): void {
    if (!this.#pool(pool).setEndpoints(serviceName, addresses)) return;
    this.#push(pool, (stream) => stream.touch(typeUrls.endpoint, serviceName));
  }

  /** Forgets the endpoints of a service that is no more. */
  removeEndpoints(pool: string, serviceName: string): void {
    this.#pool(pool).removeEndpoints(serviceName);
  }

  /** Every connected proxy, sorted by id. */
  status(): ProxyStatus[] {
    return [...this.#streams.keys()]
      .flatMap((stream) => stream.status() ?? [])
      .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  counters(): AdsServerCounters {
    return { streams: this.#streams.size, ...this.#counters };
  }

  /** Ends all streams; proxies keep what they hold and look for the server again. */
  async close(): Promise<void> {
    this.#debounce.cancel();
    for (const stream of this.#streams.keys())
      stream.fail(grpcStatus.UNAVAILABLE, "the control plane stops");
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      this.#server.forceShutdown();
      resolve();
    }, shutdownMs);
    this.#server.tryShutdown(() => resolve());
    await promise;
    clearTimeout(timer);
  }

  #pool(name: string): Pool {
    const known = this.#pools.get(name);
    if (known !== undefined) return known;
    const pool = new Pool(this.#encoder);
    this.#pools.set(name, pool);
    return pool;
  }

  #applyWaiting(): void {
    for (const [pool, { snapshot, perProxy }] of this.#waiting) {
      const changes = this.#pool(pool).setSnapshot(snapshot, perProxy);
      this.#push(pool, (stream) => stream.changed(changes));
    }
    this.#waiting.clear();
  }

  #push(pool: string, mark: (stream: ProxyStream) => void): void {
    const streams = [...this.#streams].flatMap(([stream, of]) => (of === pool ? [stream] : []));
    // All know first, so that whatever wakes one of them writes the newest.
    for (const stream of streams) mark(stream);
    this.#pump(streams);
  }

  #pump(streams: readonly ProxyStream[]): void {
    for (const stream of streams.slice(0, streamsPerTurn)) stream.pump();
    const rest = streams.slice(streamsPerTurn);
    if (rest.length > 0) setImmediate(() => this.#pump(rest));
  }

  #open(call: DeltaCall): void {
    if (this.#streams.size >= streamsMax) {
      this.#counters.refusedStreams += 1;
      call.emit("error", { code: grpcStatus.RESOURCE_EXHAUSTED, details: "too many streams" });
      return;
    }
    const stream: ProxyStream = new ProxyStream(call, {
      onNode: (node) => this.#join(stream, node),
      onRejections: (from, rejections) => this.#rejected(from, rejections),
      onSettled: (from) => this.#changed(from),
      onWritten: (bytes) => {
        this.#counters.responses += 1;
        this.#counters.bytes += bytes;
      },
    });
    this.#streams.set(stream, undefined);
    for (const event of ["end", "error", "cancelled", "close"])
      call.on(event, () => this.#leave(stream));
  }

  #join(stream: ProxyStream, node: ProxyNode): Pool {
    this.#streams.set(stream, node.pool);
    const { id, pool, envoyVersion } = node;
    this.#options.logger.info({ proxy: id, pool, envoy: envoyVersion }, "proxy connected");
    return this.#pool(pool);
  }

  #leave(stream: ProxyStream): void {
    if (!this.#streams.delete(stream) || stream.node === undefined) return;
    const { id, pool } = stream.node;
    this.#options.logger.info({ proxy: id, pool }, "proxy disconnected");
    this.#changed(stream);
  }

  #rejected(stream: ProxyStream, rejections: readonly Rejection[]): void {
    this.#counters.rejections += rejections.length;
    for (const { name, typeUrl, message, sources } of rejections) {
      const source = sources.map(({ label }) => label).join(", ");
      const fields = { proxy: stream.node?.id, type: typeUrl, name, source };
      this.#options.logger.warn({ ...fields, error: message }, "proxy refused a resource");
    }
    this.#changed(stream);
  }

  #changed(stream: ProxyStream): void {
    const { onProxyChange } = this.#options;
    if (onProxyChange === undefined) return;
    const status = stream.status();
    if (status !== undefined) onProxyChange(status);
  }
}
