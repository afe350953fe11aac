/** A shard and the epoch at which it is held, or was. */
export interface HeldShard {
  readonly key: string;
  readonly epoch: bigint;
}

/** What the coordinator says that a server holds, and releases that it has not acknowledged yet (M3). */
export class HeldShards {
  readonly #epochs = new Map<string, bigint>();
  readonly #released = new Map<string, HeldShard>();

  get size(): number {
    return this.#epochs.size;
  }

  granted(shards: readonly HeldShard[]): void {
    for (const { key, epoch } of shards) this.#epochs.set(key, epoch);
  }

  released(shards: readonly HeldShard[]): void {
    for (const shard of shards) {
      const held = this.#epochs.get(shard.key);
      if (held !== undefined && held <= shard.epoch) this.#epochs.delete(shard.key);
      this.#released.set(shard.key, shard);
    }
  }

  acknowledged(shards: readonly HeldShard[]): void {
    for (const { key, epoch } of shards) {
      const released = this.#released.get(key);
      if (released !== undefined && released.epoch <= epoch) this.#released.delete(key);
    }
  }

  unacknowledged(): HeldShard[] {
    return [...this.#released.values()];
  }
}
