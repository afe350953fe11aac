import type { FrameBodyInit } from "@belay/protocol";
import type { ShardEpochInit } from "../frame-init.ts";
import type { RequestId, ResetReason, ServerSessionConfig, ServerSessionEffect } from "./event.ts";
import type { HeldLease } from "./lease.ts";
import type { HeldShard, Ledger } from "./ledger.ts";

/** What the parts of a session share: what is known of the incarnation, and the way out. */
export class SessionCore {
  readonly config: ServerSessionConfig;
  readonly lease: HeldLease;
  readonly ledger: Ledger;
  effects: ServerSessionEffect[] = [];
  connected = false;
  /** 0: none. */
  incarnation = 0n;
  /** Highest revision that the coordinator has named to this incarnation. */
  asOf = 0n;
  #requestId = 0;

  constructor(config: ServerSessionConfig, lease: HeldLease, ledger: Ledger) {
    this.config = config;
    this.lease = lease;
    this.ledger = ledger;
  }

  now(): number {
    return this.config.clock.now();
  }

  /** Nothing is kept for later: what must be said again is said after the next Resume. */
  send(frame: FrameBodyInit): void {
    if (this.connected) this.effects.push({ type: "send", frame });
  }

  nextRequestId(): number {
    this.#requestId = (this.#requestId % 0xffff_ffff) + 1;
    return this.#requestId;
  }

  sawRevision(revision: bigint): void {
    if (revision > this.asOf) this.asOf = revision;
  }

  reset(requests: readonly RequestId[], reason: ResetReason): void {
    if (requests.length > 0) this.effects.push({ type: "reset", requests, reason });
  }

  /** The request is over; the last one of a draining shard lets it go. */
  end(id: RequestId): void {
    const drained = this.ledger.end(id);
    if (drained !== undefined) this.giveUp([drained]);
  }

  /** Resets what runs on a shard, or everything. */
  cut(requests: Iterable<RequestId>, reason: ResetReason): void {
    const running = Array.from(requests);
    this.reset(running, reason);
    for (const id of running) this.end(id);
  }

  /** M3: irrevocable from here; repeated after each Resume until acknowledged. */
  giveUp(shards: readonly ShardEpochInit[]): void {
    if (shards.length === 0) return;
    for (const { key, epoch } of shards) {
      const wasHeld = this.ledger.held(key) !== undefined;
      this.ledger.giveUp(key, epoch);
      if (wasHeld) this.effects.push({ type: "given-up", key, epoch });
    }
    this.sendRelease(shards);
  }

  sendRelease(shards: readonly ShardEpochInit[]): void {
    const pairs = shards.map(({ key, epoch }) => ({ key, epoch }));
    this.send({ case: "release", value: { incarnation: this.incarnation, shards: pairs } });
  }

  /** W2: after the message in hand. */
  closeSockets({ requests }: HeldShard): void {
    const isSocket = (id: RequestId): boolean => this.ledger.running(id)?.kind === "socket";
    const sockets = Array.from(requests).filter((id) => isSocket(id));
    if (sockets.length > 0) this.effects.push({ type: "close-sockets", requests: sockets });
  }
}
