import type { Clearance, Proxy, Service } from "./state.ts";

/** What the proxies still owe for one revoking entry. */
export interface ClearanceOptions {
  readonly service: Service;
  /** Of the entry's commit. */
  readonly revision: bigint;
  /** Incarnation that has ended, or whose shard moves. */
  readonly incarnation: bigint;
  /** The shard that moves; undefined: the whole incarnation has ended. */
  readonly shard: { readonly key: string; readonly epoch: bigint } | undefined;
  /** Unguarded: `quiet` is wanted too, and P6 may hold it back until then. */
  readonly quietFrom: number | undefined;
  onDropped(): void;
  onClear(): void;
}

/**
 * M4's condition on the proxies, for one move or one ended incarnation: every proxy that may still
 * believe the old answer is `dropped` and, for unguarded services, `quiet`; or W(F) has passed since
 * its last renewal. Guarded owners need no proxy: for them only `dropped` is watched (M2).
 */
export class ProxyClearance implements Clearance {
  readonly service: Service;
  readonly revision: bigint;
  readonly #options: ClearanceOptions;
  readonly #undropped = new Set<Proxy>();
  readonly #unquiet = new Set<Proxy>();
  readonly #quiet = new Set<Proxy>();
  #timeReached: boolean;
  #clear = false;
  #droppedTold = false;

  constructor(options: ClearanceOptions, live: Iterable<Proxy>, now: number) {
    this.#options = options;
    this.service = options.service;
    this.revision = options.revision;
    this.#timeReached = options.quietFrom === undefined || now >= options.quietFrom;
    for (const proxy of live) this.join(proxy);
  }

  get clear(): boolean {
    return this.#clear;
  }

  get allDropped(): boolean {
    return this.#undropped.size === 0;
  }

  /** Proxies that it still waits for. */
  waiting(): Iterable<Proxy> {
    return this.#unquiet.size > 0 ? this.#unquiet : this.#undropped;
  }

  get needsQuiet(): boolean {
    return this.#options.quietFrom !== undefined;
  }

  /** `proxy` may believe something: it has to acknowledge, unless it has. */
  join(proxy: Proxy): void {
    if (this.#clear) return;
    if (proxy.dropped < this.revision) this.#undropped.add(proxy);
    if (this.needsQuiet && !this.#quiet.has(proxy)) this.#unquiet.add(proxy);
  }

  /** P3: it has acknowledged up to `proxy.dropped`. */
  dropped(proxy: Proxy): void {
    if (proxy.dropped < this.revision) return;
    this.#undropped.delete(proxy);
    // A snapshot that does not list an incarnation any more has cut what was open to it.
    if (this.#options.shard === undefined && proxy.snapshotRevision >= this.revision)
      this.quiet(proxy);
    this.judge();
  }

  quiet(proxy: Proxy): void {
    this.#quiet.add(proxy);
    this.#unquiet.delete(proxy);
    this.judge();
  }

  /** It believes nothing any more: its lease is over (W(F)), or it said goodbye (P7). */
  leave(proxy: Proxy): void {
    this.#undropped.delete(proxy);
    this.#unquiet.delete(proxy);
    this.judge();
  }

  /** P6 has passed. */
  timeReached(): void {
    this.#timeReached = true;
    this.judge();
  }

  /** Calls back at most once for each of `dropped` and `clear`. */
  judge(): void {
    if (this.allDropped && !this.#droppedTold) {
      this.#droppedTold = true;
      this.#options.onDropped();
    }
    if (this.#clear) return;
    const met = this.allDropped && this.#unquiet.size === 0 && this.#timeReached;
    if (!met && this.needsQuiet) return;
    this.#clear = true;
    this.#options.onClear();
  }
}
