import type { RequestId } from "./event.ts";

export interface RunningRequest {
  readonly id: RequestId;
  readonly kind: "request" | "socket";
  /** Undefined: keyless. */
  readonly key: string | undefined;
  /** That it was admitted at; 0n: keyless. */
  readonly epoch: bigint;
}

export interface HeldShard {
  readonly key: string;
  readonly epoch: bigint;
  /** When what still runs is cut; undefined: active. */
  drainUntil: number | undefined;
  readonly requests: Set<RequestId>;
}

/** What this server holds, what it gave up, and what runs (G1, M3). */
export class Ledger {
  readonly #held = new Map<string, HeldShard>();
  /** M3: until the acknowledgement; an epoch at or below is never admitted (G2). */
  readonly #givenUp = new Map<string, bigint>();
  readonly #draining = new Set<HeldShard>();
  readonly #running = new Map<RequestId, RunningRequest>();

  get heldCount(): number {
    return this.#held.size;
  }

  get runningCount(): number {
    return this.#running.size;
  }

  held(key: string): HeldShard | undefined {
    return this.#held.get(key);
  }

  givenUpEpoch(key: string): bigint {
    return this.#givenUp.get(key) ?? 0n;
  }

  /** Every (key, epoch) whose release is not acknowledged. */
  givenUp(): { readonly key: string; readonly epoch: bigint }[] {
    return Array.from(this.#givenUp, ([key, epoch]) => ({ key, epoch }));
  }

  running(id: RequestId): RunningRequest | undefined {
    return this.#running.get(id);
  }

  allRunning(): RequestId[] {
    return Array.from(this.#running.keys());
  }

  draining(): Iterable<HeldShard> {
    return this.#draining;
  }

  /** A grant or confirmation. False: older than what is held or was given up. */
  hold(key: string, epoch: bigint): boolean {
    const held = this.#held.get(key);
    if (epoch <= this.givenUpEpoch(key) || (held !== undefined && epoch <= held.epoch))
      return false;
    if (held !== undefined) this.#draining.delete(held);
    this.#held.set(key, { key, epoch, drainUntil: undefined, requests: new Set() });
    return true;
  }

  startDraining(shard: HeldShard, until: number): void {
    shard.drainUntil = until;
    this.#draining.add(shard);
  }

  /** Irrevocable (M3). */
  giveUp(key: string, epoch: bigint): void {
    const held = this.#held.get(key);
    if (held !== undefined && held.epoch <= epoch) {
      this.#held.delete(key);
      this.#draining.delete(held);
    }
    if (epoch > this.givenUpEpoch(key)) this.#givenUp.set(key, epoch);
  }

  acknowledged(key: string, epoch: bigint): void {
    if (this.#givenUp.get(key) === epoch) this.#givenUp.delete(key);
  }

  begin(request: RunningRequest): void {
    this.#running.set(request.id, request);
    if (request.key !== undefined) this.#held.get(request.key)?.requests.add(request.id);
  }

  /** The shard that it was the last running request of, if that is draining. */
  end(id: RequestId): HeldShard | undefined {
    const request = this.#running.get(id);
    this.#running.delete(id);
    const shard = request?.key === undefined ? undefined : this.#held.get(request.key);
    if (shard === undefined || !shard.requests.delete(id)) return undefined;
    return shard.drainUntil !== undefined && shard.requests.size === 0 ? shard : undefined;
  }

  /** The incarnation has ended: nothing is held, nothing is remembered. */
  clear(): void {
    this.#held.clear();
    this.#givenUp.clear();
    this.#draining.clear();
    this.#running.clear();
  }
}
