import type { Resource } from "../resources/resource.ts";
import { blamedSources, type Rejection, rejectedNames } from "./rejection.ts";

/** What a stream may see: the resources of its pool, as they are now. */
export interface View {
  /** `pending`: it exists, but its content is not known yet: say nothing until it is (rule 7). */
  get(typeUrl: string, name: string): Resource | "pending" | undefined;
  names(typeUrl: string): Iterable<string>;
}

/** A response to be written, without its nonce. */
export interface Outgoing {
  readonly typeUrl: string;
  readonly resources: readonly Resource[];
  readonly removed: readonly string[];
}

/** Bytes of resources in one response; a single larger resource still goes, alone. */
const responseBytesMax = 4 << 20;

/**
 * What one stream knows about one type: wanted, sent, acknowledged, owed. Pure state; the order
 * between types is the stream's business.
 */
export class TypeSubscription {
  readonly typeUrl: string;
  wildcard = false;
  readonly names = new Set<string>();
  /** Versions handed to the stream, or held by the client since before it. */
  readonly sent = new Map<string, string>();
  readonly acked = new Map<string, string>();
  /** Refused versions. They count as sent, so they are parked until their version changes (rule 3). */
  readonly rejected = new Map<string, Rejection>();
  /** Sent once and gone from the view: to be removed when nothing refers to it any more. */
  readonly gone = new Set<string>();
  readonly inFlight = new Map<string, readonly Resource[]>();
  /** Names to look at, those that must be answered even if unchanged, those that must go alone. */
  readonly #dirty = new Set<string>();
  readonly #owed = new Set<string>();
  readonly #alone = new Set<string>();
  #everything = false;
  #greet = false;

  constructor(typeUrl: string) {
    this.typeUrl = typeUrl;
  }

  get waiting(): boolean {
    return this.#everything || this.#greet || this.#dirty.size > 0;
  }

  /** The first request of the type on a stream: the client says what it holds already. */
  start(wildcard: boolean, held: Readonly<Record<string, string>>): void {
    for (const [name, version] of Object.entries(held)) {
      this.sent.set(name, version);
      this.acked.set(name, version);
    }
    if (wildcard) this.#subscribeAll();
  }

  subscribe(name: string, first: boolean): void {
    if (name === "*") return this.#subscribeAll();
    this.names.add(name);
    // Rule 4: who asks again gets it again; but after a reconnect only what changed.
    if (first && this.sent.has(name)) this.#dirty.add(name);
    else this.owe(name);
  }

  unsubscribe(name: string): void {
    if (name === "*") {
      this.wildcard = false;
      for (const held of this.sent.keys()) if (!this.names.has(held)) this.#forget(held);
      return;
    }
    this.names.delete(name);
    this.#forget(name);
    // Still wanted as part of everything: the client may have dropped it, so it is sent again.
    if (this.wildcard) this.owe(name);
  }

  /** The view of this name may have changed. */
  touch(name: string): void {
    if (this.#wants(name) || this.sent.has(name)) this.#dirty.add(name);
  }

  /** The whole view may have changed. */
  touchAll(): void {
    this.#everything = true;
  }

  /** The name is sent with the next response even if unchanged. */
  owe(name: string): void {
    this.#owed.add(name);
    this.#dirty.add(name);
  }

  /** New, changed and owed resources, and names asked for that do not exist (rule 2). */
  takeUpserts(view: View): Outgoing | undefined {
    this.#expand(view);
    const [resources, removed]: [Resource[], string[]] = [[], []];
    let bytes = 0;
    for (const name of [...this.#dirty].toSorted()) {
      const busy = resources.length > 0;
      if (busy && (this.#alone.has(name) || bytes >= responseBytesMax)) continue;
      const alone = this.#alone.delete(name);
      const found = this.#consider(name, view);
      if (found === "unknown") removed.push(name);
      else if (found !== undefined) {
        resources.push(found);
        bytes += found.framed.length;
      }
      if (alone && found !== undefined) break;
    }
    const greet = this.#greet;
    this.#greet = false;
    if (resources.length === 0 && removed.length === 0 && !greet) return undefined;
    return { typeUrl: this.typeUrl, resources, removed };
  }

  takeRemovals(view: View): Outgoing | undefined {
    const removed = [...this.gone].filter((name) => view.get(this.typeUrl, name) === undefined);
    this.gone.clear();
    for (const name of removed) this.#forget(name);
    if (removed.length === 0) return undefined;
    return { typeUrl: this.typeUrl, resources: [], removed: removed.toSorted() };
  }

  /** Rule 3: an ACK is a known nonce without an error. */
  acknowledge(nonce: string): void {
    for (const resource of this.#settle(nonce)) this.#confirm(resource);
  }

  /**
   * Rule 3: the refused versions are parked. Where Envoy does not say which resource of several it
   * means, each is sent once more by itself, so that a bad one does not take the others with it.
   */
  reject(nonce: string, message: string): Rejection[] {
    const resources = this.#settle(nonce);
    // A refused removal: nothing to park, but somebody should hear of it.
    if (resources.length === 0)
      return [{ typeUrl: this.typeUrl, name: "", version: "", message, sources: [] }];
    const blamed = rejectedNames(
      message,
      resources.map((resource) => resource.name),
    );
    const bad =
      resources.length === 1 ? resources : resources.filter((r) => blamed.includes(r.name));
    for (const resource of resources) {
      if (bad.includes(resource)) continue;
      // Envoy applies the good clusters and listeners of a response that it refuses.
      if (bad.length > 0) this.#confirm(resource);
      else if (this.sent.get(resource.name) === resource.version) {
        this.#alone.add(resource.name);
        this.owe(resource.name);
      }
    }
    return bad.map(({ typeUrl, name, version, sources }) => {
      const blame = blamedSources(message, sources);
      const rejection = { typeUrl, name, version, message, sources: blame };
      if (this.sent.get(name) === version) this.rejected.set(name, rejection);
      return rejection;
    });
  }

  #subscribeAll(): void {
    this.wildcard = true;
    this.#everything = true;
    // A client that holds nothing waits for an answer, even an empty one.
    this.#greet = this.sent.size === 0;
  }

  #wants(name: string): boolean {
    return this.wildcard || this.names.has(name);
  }

  #expand(view: View): void {
    if (!this.#everything) return;
    this.#everything = false;
    for (const name of this.names) this.#dirty.add(name);
    for (const name of this.sent.keys()) this.#dirty.add(name);
    if (this.wildcard) for (const name of view.names(this.typeUrl)) this.#dirty.add(name);
  }

  #consider(name: string, view: View): Resource | "unknown" | undefined {
    this.#dirty.delete(name);
    const owed = this.#owed.delete(name);
    const resource = view.get(this.typeUrl, name);
    if (resource === "pending") {
      if (owed) this.#owed.add(name);
      return undefined;
    }
    if (resource === undefined) {
      if (this.sent.has(name) && !owed) this.gone.add(name);
      if (!owed || !this.#wants(name)) return undefined;
      this.#forget(name);
      return "unknown";
    }
    this.gone.delete(name);
    if (!this.#wants(name)) return undefined;
    if (!owed && this.sent.get(name) === resource.version) return undefined;
    this.sent.set(name, resource.version);
    return resource;
  }

  #settle(nonce: string): readonly Resource[] {
    const resources = this.inFlight.get(nonce) ?? [];
    this.inFlight.delete(nonce);
    return resources;
  }

  #confirm(resource: Resource): void {
    if (this.sent.get(resource.name) !== resource.version) return;
    this.acked.set(resource.name, resource.version);
    this.rejected.delete(resource.name);
  }

  #forget(name: string): void {
    for (const held of [this.sent, this.acked, this.rejected, this.gone, this.#dirty, this.#owed])
      held.delete(name);
    this.#alone.delete(name);
  }
}
