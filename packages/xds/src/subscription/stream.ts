import { typeUrls } from "@belay/envoy-api";
import { removalOrder, upsertOrder, usersOf, wildcardTypes } from "./order.ts";
import type { Rejection } from "./rejection.ts";
import { type Outgoing, TypeSubscription, type View } from "./type-subscription.ts";

/** What a delta request says, without its transport. */
export interface Request {
  readonly typeUrl: string;
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
  /** Name to version, on the first request of a type: what the client holds. */
  readonly held: Readonly<Record<string, string>>;
  /** Empty when the request answers nothing. */
  readonly nonce: string;
  /** Set when the client refuses the response of `nonce`. */
  readonly error: string | undefined;
}

/** A response with its nonce, to be written now. */
export interface Response extends Outgoing {
  readonly nonce: string;
}

/** Where a stream stands with one type. */
export interface TypeStatus {
  readonly typeUrl: string;
  /** Resources handed over, and those of them that the client confirmed at that version. */
  readonly sent: number;
  readonly acked: number;
  readonly rejections: readonly Rejection[];
}

/** Unanswered responses per type before the next one waits (and is replaced by what is newest). */
const inFlightMax = 4;

/**
 * The state of one delta ADS stream. `next` is asked whenever the stream can take bytes, so what
 * waits is never a queue of old responses but the newest version of each resource (rule 1).
 */
export class StreamSubscription {
  readonly #types = new Map<string, TypeSubscription>();
  #upserts: readonly TypeSubscription[] = [];
  #removals: readonly TypeSubscription[] = [];
  #nonce = 0;

  /** Takes a request in; answers what the client refused, if it did. */
  receive(request: Request): readonly Rejection[] {
    const { typeUrl, nonce, error } = request;
    const known = this.#types.get(typeUrl);
    const type = known ?? new TypeSubscription(typeUrl);
    const first = known === undefined;
    if (first) {
      this.#types.set(typeUrl, type);
      this.#upserts = this.#ordered(upsertOrder);
      this.#removals = this.#ordered(removalOrder);
      const wildcard = wildcardTypes.has(typeUrl) && request.subscribe.length === 0;
      type.start(wildcard, request.held);
    }
    // Rule 4: the changes of a request count, whatever its nonce. Unsubscribing comes first: a name
    // in both lists is asked for again.
    const rejections = error === undefined ? [] : type.reject(nonce, error);
    if (error === undefined) type.acknowledge(nonce);
    for (const name of request.unsubscribe) type.unsubscribe(name);
    for (const name of request.subscribe) type.subscribe(name, first);
    return rejections;
  }

  /** These names may have changed in the view. */
  touch(typeUrl: string, names: Iterable<string>): void {
    const type = this.#types.get(typeUrl);
    if (type !== undefined) for (const name of names) type.touch(name);
  }

  /** Anything may have changed in the view. */
  touchAll(): void {
    for (const type of this.#types.values()) type.touchAll();
  }

  /** The next response to write, if any; call again until there is none. */
  next(view: View): Response | undefined {
    for (const type of this.#upserts) {
      if (this.#isBlocked(type)) continue;
      const outgoing = type.takeUpserts(view);
      if (outgoing !== undefined) return this.#send(type, outgoing);
    }
    for (const type of this.#removals) {
      if (!this.#mayRemove(type)) continue;
      const outgoing = type.takeRemovals(view);
      if (outgoing !== undefined) return this.#send(type, outgoing);
    }
    return undefined;
  }

  /** Whether the client has confirmed everything that it should hold. */
  get inSync(): boolean {
    return [...this.#types.values()].every(
      (type) =>
        !type.waiting &&
        type.inFlight.size === 0 &&
        type.gone.size === 0 &&
        type.rejected.size === 0,
    );
  }

  /** Types and names that the client asked for one by one. */
  get subscriptionCount(): number {
    let count = this.#types.size;
    for (const type of this.#types.values()) count += type.names.size;
    return count;
  }

  status(): TypeStatus[] {
    return this.#upserts.map((type) => ({
      typeUrl: type.typeUrl,
      sent: type.sent.size,
      acked: [...type.sent].filter(([name, version]) => type.acked.get(name) === version).length,
      rejections: [...type.rejected.values()],
    }));
  }

  #ordered(order: readonly string[]): TypeSubscription[] {
    const rank = (type: TypeSubscription): number => {
      const index = order.indexOf(type.typeUrl);
      return index < 0 ? order.length : index;
    };
    return [...this.#types.values()].toSorted(
      (a, b) => rank(a) - rank(b) || (a.typeUrl < b.typeUrl ? -1 : 1),
    );
  }

  #isBlocked(type: TypeSubscription): boolean {
    if (type.inFlight.size >= inFlightMax) return true;
    if (type.typeUrl !== typeUrls.listener && type.typeUrl !== typeUrls.route) return false;
    // Routes are not warmed: they wait until Envoy has its clusters. It confirms them when their
    // endpoints have come, which never wait (envoy.md: xDS, «Warming»).
    return this.#isBusy(typeUrls.cluster);
  }

  /** Rules 1 and 15: nothing goes before its users have left, and have confirmed that. */
  #mayRemove(type: TypeSubscription): boolean {
    const users = usersOf[type.typeUrl] ?? [];
    return users.every((typeUrl) => {
      const refused = this.#types.get(typeUrl)?.rejected.size ?? 0;
      return refused === 0 && !this.#isBusy(typeUrl);
    });
  }

  #isBusy(typeUrl: string): boolean {
    const type = this.#types.get(typeUrl);
    return type !== undefined && (type.inFlight.size > 0 || type.waiting);
  }

  #send(type: TypeSubscription, outgoing: Outgoing): Response {
    this.#nonce += 1;
    const nonce = String(this.#nonce);
    type.inFlight.set(nonce, outgoing.resources);
    if (type.typeUrl === typeUrls.cluster) this.#rewarm(typeUrls.endpoint, outgoing);
    if (type.typeUrl === typeUrls.listener) this.#rewarm(typeUrls.route, undefined);
    return { ...outgoing, nonce };
  }

  /**
   * Rule 2: Envoy warms a changed parent with a fresh copy of its children and does not ask for what
   * it has subscribed to already. Without it a changed cluster takes 15 s to become active.
   */
  #rewarm(childTypeUrl: string, parents: Outgoing | undefined): void {
    const children = this.#types.get(childTypeUrl);
    if (children === undefined) return;
    const names = parents?.resources.map((resource) => resource.name) ?? [...children.names];
    for (const name of names) if (children.names.has(name)) children.owe(name);
  }
}
