import type { FrameBodyInit } from "@belay/protocol";
import type { ShardHooks } from "./shard-hooks.ts";

interface ShardEpochInit {
  readonly key: string;
  readonly epoch: bigint;
}

/**
 * The session's way out. A release is irrevocable once sent (M3), and the next owner starts on it: so
 * it waits for the application's onRelease hook, shard by shard, while all else goes on.
 */
export class Outgoing {
  readonly #send: (frame: FrameBodyInit) => void;
  readonly #hooks: ShardHooks;

  constructor(send: (frame: FrameBodyInit) => void, hooks: ShardHooks) {
    this.#send = send;
    this.#hooks = hooks;
  }

  send(frame: FrameBodyInit): void {
    if (frame.case !== "release") {
      this.#send(frame);
      return;
    }
    const { incarnation = 0n, shards = [] } = frame.value;
    const ready: ShardEpochInit[] = [];
    for (const { key = "", epoch = 0n } of shards) {
      const pending = this.#hooks.pendingRelease(key, epoch);
      if (pending === undefined) ready.push({ key, epoch });
      else void pending.then(() => this.#sendRelease(incarnation, [{ key, epoch }]));
    }
    if (ready.length > 0) this.#sendRelease(incarnation, ready);
  }

  #sendRelease(incarnation: bigint, shards: ShardEpochInit[]): void {
    this.#send({ case: "release", value: { incarnation, shards } });
  }
}
