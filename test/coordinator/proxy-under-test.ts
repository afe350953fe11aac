import {
  type CoordinatorConnection,
  type FeedBatch,
  type FeedEntry,
  type FrameBody,
  type Resolved,
  ResolveOutcome,
  Role,
} from "@belay/protocol";
import { pause } from "@belay/testkit";
import type { CoordinatorUnderTest } from "./coordinator-under-test.ts";

const RENEW_MS = 300;
const ATTEMPTS_MAX = 400;

/**
 * What an edge does towards the coordinator, without the traffic: follows the feed, holds a feed
 * lease, acknowledges at once, resolves.
 */
export class ProxyUnderTest {
  readonly connection: CoordinatorConnection;
  /** Address of each live incarnation. */
  readonly addresses = new Map<bigint, string>();
  /** Last entry of each shard that the feed named. */
  readonly entries: FeedEntry["entry"][] = [];
  applied = 0n;
  complete = false;
  #generation = "";
  readonly #timer: NodeJS.Timeout;

  constructor(coordinator: CoordinatorUnderTest, name = "edge") {
    this.connection = coordinator.connect(Role.PROXY, name, {
      pool: "default",
      resumeFrom: (generation) =>
        Buffer.from(generation).toString("hex") === this.#generation ? this.applied : 0n,
      onConnected: (welcome) => {
        this.#generation = Buffer.from(welcome.generation).toString("hex");
        this.#renew();
      },
      onFrame: (frame) => this.#take(frame),
    });
    this.#timer = setInterval(() => this.#renew(), RENEW_MS);
    coordinator.onClose(() => clearInterval(this.#timer));
  }

  /** One answer, whatever it is. */
  async resolveOnce(key: string, service = "world", minRevision = 0n): Promise<Resolved> {
    return this.connection.request(
      (requestId) => ({ case: "resolve", value: { requestId, service, key, minRevision } }),
      (body) => (body.case === "resolved" ? body.value : undefined),
    );
  }

  /** Asks until somebody owns the key. */
  async resolve(key: string, service = "world", minRevision = 0n): Promise<Resolved> {
    let last = "";
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      try {
        const resolved = await this.resolveOnce(key, service, minRevision);
        if (resolved.outcome === ResolveOutcome.OWNER) return resolved;
        last = `outcome ${resolved.outcome}`;
      } catch (error) {
        last = String(error);
      }
      await pause(25);
    }
    throw new Error(`${key} is not resolved: ${last}`);
  }

  #renew(): void {
    this.connection.send({
      case: "renewFeedLease",
      value: { nonce: 1, dropped: this.applied },
    });
  }

  #take(frame: FrameBody): void {
    if (frame.case === "feedBatch") this.#apply(frame.value);
  }

  #apply(batch: FeedBatch): void {
    if (batch.snapshot && this.complete) {
      this.addresses.clear();
      this.complete = false;
    }
    for (const { entry } of batch.entries) {
      if (entry.case === "server") this.addresses.set(entry.value.incarnation, entry.value.address);
      if (entry.case === "serverEnded") this.addresses.delete(entry.value.incarnation);
      if (entry.case === "serverEnded" || entry.case === "shardMoving") this.#quiet(entry);
      this.entries.push(entry);
    }
    this.applied = batch.revision;
    if (!batch.snapshot || batch.complete) this.complete = true;
    this.connection.send({ case: "dropped", value: { revision: batch.revision } });
  }

  #quiet(entry: Extract<FeedEntry["entry"], { case: "serverEnded" | "shardMoving" }>): void {
    const { service, incarnation } = entry.value;
    const shard =
      entry.case === "shardMoving"
        ? { key: entry.value.key, epoch: entry.value.epoch }
        : { key: "", epoch: 0n };
    this.connection.send({ case: "quiet", value: { service, incarnation, ...shard } });
  }
}
