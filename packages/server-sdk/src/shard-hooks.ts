import type { Logger } from "@belay/model";

/** Why a key's state is let go: handed over in order, or the lease is over and it is lost. */
export type ReleaseReason = "moved" | "lost";

/** A promise is waited for. */
export type AcquireHook = (key: string, epoch: bigint) => unknown;
/** A promise is waited for, at most `releaseMs`. */
export type ReleaseHook = (key: string, epoch: bigint, reason: ReleaseReason) => unknown;

interface Shard {
  readonly epoch: bigint;
  acquiring: Promise<boolean> | true;
}

const idOf = (key: string, epoch: bigint): string => `${epoch}:${key}`;

/**
 * Runs the application's hooks: `acquire` once per (key, epoch) before its first request, `release`
 * once after its last and before the coordinator is told. A hook that fails to acquire is tried
 * again by the next request.
 */
export class ShardHooks {
  readonly #shards = new Map<string, Shard>();
  readonly #releasing = new Map<string, Promise<void>>();
  readonly #logger: Logger;
  readonly #releaseMsMax: number;
  acquireHook: AcquireHook | undefined;
  releaseHook: ReleaseHook | undefined;

  constructor(logger: Logger, releaseMsMax: number) {
    this.#logger = logger;
    this.#releaseMsMax = releaseMsMax;
  }

  /** True at once if nothing is to be awaited; else whether the hook succeeded. */
  acquire(key: string, epoch: bigint): true | Promise<boolean> {
    const { acquireHook } = this;
    if (acquireHook === undefined && this.releaseHook === undefined) return true;
    const known = this.#shards.get(key);
    if (known?.epoch === epoch) return known.acquiring;
    const shard: Shard = { epoch, acquiring: true };
    this.#shards.set(key, shard);
    if (acquireHook === undefined) return true;
    shard.acquiring = this.#runAcquire(acquireHook, key, shard);
    return shard.acquiring;
  }

  /** Starts the release of a shard that was given up; `pendingRelease` tells when it is done. */
  release(key: string, epoch: bigint, reason: ReleaseReason): void {
    const shard = this.#shards.get(key);
    if (shard?.epoch !== epoch) return;
    this.#shards.delete(key);
    if (this.releaseHook === undefined) return;
    const id = idOf(key, epoch);
    const running = this.#runRelease(key, shard, reason).finally(() => this.#releasing.delete(id));
    this.#releasing.set(id, running);
  }

  /** The lease is over: what was held is no longer ours (S5). */
  releaseAll(reason: ReleaseReason): void {
    for (const [key, { epoch }] of this.#shards) this.release(key, epoch, reason);
  }

  /** The release hook that the coordinator must not overtake, if it still runs. */
  pendingRelease(key: string, epoch: bigint): Promise<void> | undefined {
    return this.#releasing.get(idOf(key, epoch));
  }

  async allReleased(): Promise<void> {
    await Promise.all(this.#releasing.values());
  }

  async #runAcquire(hook: AcquireHook, key: string, shard: Shard): Promise<boolean> {
    try {
      await hook(key, shard.epoch);
      shard.acquiring = true;
      return true;
    } catch (error) {
      this.#logger.error({ epoch: shard.epoch, error: String(error) }, "onAcquire failed");
      if (this.#shards.get(key) === shard) this.#shards.delete(key);
      return false;
    }
  }

  async #runRelease(key: string, shard: Shard, reason: ReleaseReason): Promise<void> {
    const { promise: tooLate, resolve } = Promise.withResolvers<"too late">();
    const timer = setTimeout(() => resolve("too late"), this.#releaseMsMax);
    const hook = async (): Promise<void> => {
      await shard.acquiring;
      await this.releaseHook?.(key, shard.epoch, reason);
    };
    try {
      if ((await Promise.race([hook(), tooLate])) === "too late") {
        const fields = { epoch: shard.epoch, releaseMsMax: this.#releaseMsMax };
        this.#logger.error(fields, "onRelease takes too long; the key moves without it");
      }
    } catch (error) {
      this.#logger.error({ epoch: shard.epoch, error: String(error) }, "onRelease failed");
    } finally {
      clearTimeout(timer);
    }
  }
}
