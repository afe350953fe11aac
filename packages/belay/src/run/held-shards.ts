import type { ShardEpoch } from "@belay/protocol";

/** What the coordinator says that a server holds, and releases that it has not acknowledged yet (M3). */
export class HeldShards {
  readonly #epochs = new Map<string, bigint>();
  readonly #released = new Map<string, ShardEpoch>();

  get size(): number {
    return this.#epochs.size;
  }

  granted(shards: readonly ShardEpoch[]): void {
    for (const { key, epoch } of shards) this.#epochs.set(key, epoch);
  }

  released(shards: readonly ShardEpoch[]): void {
    for (const shard of shards) {
      const held = this.#epochs.get(shard.key);
      if (held !== undefined && held <= shard.epoch) this.#epochs.delete(shard.key);
      this.#released.set(shard.key, shard);
    }
  }

  acknowledged(shards: readonly ShardEpoch[]): void {
    for (const { key, epoch } of shards) {
      const released = this.#released.get(key);
      if (released !== undefined && released.epoch <= epoch) this.#released.delete(key);
    }
  }

  unacknowledged(): ShardEpoch[] {
    return [...this.#released.values()];
  }
}
