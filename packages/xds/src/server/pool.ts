import { typeUrls } from "@belay/envoy-api";
import type { EndpointEncoder } from "../resources/endpoints.ts";
import type { Resource } from "../resources/resource.ts";
import { type Change, diffSnapshots, type Snapshot } from "../resources/snapshot.ts";
import type { View } from "../subscription/type-subscription.ts";
import type { ProxyNode } from "./wire-request.ts";

/** Resources that differ by proxy, such as a listener on the proxy's own port. */
export type PerProxy = (node: ProxyNode) => readonly Resource[];

/** What one proxy sees; `own` is what it sees alone. */
export interface ProxyView extends View {
  readonly own: readonly Resource[];
}

const none: PerProxy = () => [];

/** What the proxies of one pool see: a snapshot, and endpoints that change beside it (rule 9). */
export class Pool {
  #snapshot: Snapshot | undefined;
  #perProxy: PerProxy = none;
  readonly #endpoints = new Map<string, Resource>();
  readonly #encoder: EndpointEncoder;

  constructor(encoder: EndpointEncoder) {
    this.#encoder = encoder;
  }

  /** Rule 7: nobody is answered before the first complete build. */
  get ready(): boolean {
    return this.#snapshot !== undefined;
  }

  setSnapshot(snapshot: Snapshot, perProxy: PerProxy = this.#perProxy): readonly Change[] {
    const changes = diffSnapshots(this.#snapshot, snapshot);
    this.#snapshot = snapshot;
    this.#perProxy = perProxy;
    // The endpoints of a cluster exist while it does.
    const endpoints = changes.flatMap(({ typeUrl, name, kind }) =>
      typeUrl === typeUrls.cluster ? [{ typeUrl: typeUrls.endpoint, name, kind }] : [],
    );
    return [...changes, ...endpoints];
  }

  /** True when something changed for proxies of this pool. Throws on an address that is no IP:port. */
  setEndpoints(service: string, addresses: Iterable<string>): boolean {
    const resource = this.#encoder.encode(service, addresses);
    if (this.#endpoints.get(service)?.version === resource.version) return false;
    this.#endpoints.set(service, resource);
    return this.#isUsed(service);
  }

  removeEndpoints(service: string): void {
    this.#endpoints.delete(service);
  }

  viewOf(node: ProxyNode): ProxyView {
    const own = new Map<string, Map<string, Resource>>();
    const resources = this.#perProxy(node);
    for (const resource of resources) {
      const named = own.get(resource.typeUrl) ?? new Map<string, Resource>();
      own.set(resource.typeUrl, named.set(resource.name, resource));
    }
    return {
      own: resources,
      get: (typeUrl, name) => own.get(typeUrl)?.get(name) ?? this.#get(typeUrl, name),
      names: (typeUrl) => new Set([...(own.get(typeUrl)?.keys() ?? []), ...this.#names(typeUrl)]),
    };
  }

  #isUsed(service: string): boolean {
    return this.#snapshot?.types.get(typeUrls.cluster)?.has(service) === true;
  }

  #get(typeUrl: string, name: string): Resource | "pending" | undefined {
    const fixed = this.#snapshot?.types.get(typeUrl)?.get(name);
    if (fixed !== undefined || typeUrl !== typeUrls.endpoint || !this.#isUsed(name)) return fixed;
    return this.#endpoints.get(name) ?? "pending";
  }

  #names(typeUrl: string): Iterable<string> {
    const type = typeUrl === typeUrls.endpoint ? typeUrls.cluster : typeUrl;
    return this.#snapshot?.types.get(type)?.keys() ?? [];
  }
}
