import type { Batch, ShardRow } from "@belay/ownership";
import type { WorldOptions } from "./options.ts";
import type { ProxyNode } from "./proxy-node.ts";
import type { ServerNode } from "./server-node.ts";

/** A rule that did not hold; `rule` is the invariant's id. */
export class Violation extends Error {
  override readonly name = "Violation";
  readonly rule: string;

  constructor(rule: string, message: string) {
    super(`${rule}: ${message}`);
    this.rule = rule;
  }
}

interface ShardEpoch {
  readonly incarnation: bigint;
  readonly key: string;
  readonly epoch: bigint;
}

const nameOf = ({ incarnation, key, epoch }: ShardEpoch): string =>
  `${incarnation}/${key}/${epoch}`;

/** What is looked at after each step. */
export interface Observed {
  readonly options: WorldOptions;
  readonly keys: readonly string[];
  readonly servers: readonly ServerNode[];
  readonly proxies: readonly ProxyNode[];
}

/** Watches a world and throws a Violation at the first step that breaks an invariant. */
export class Checks {
  readonly #world: Observed;
  /** As committed. */
  readonly #owners = new Map<string, ShardRow>();
  readonly #epochs = new Map<string, bigint>();
  readonly #granted = new Map<string, bigint>();
  readonly #released = new Set<string>();
  readonly #ended = new Set<bigint>();
  readonly #live = new Set<bigint>();
  readonly #believed = new Map<string, bigint>();
  readonly #answeredEpochs = new Map<string, bigint>();
  readonly #runs = new Map<number, number>();
  readonly #ranAttempts = new Set<number>();

  constructor(world: Observed) {
    this.#world = world;
  }

  released(shard: ShardEpoch): void {
    this.#released.add(nameOf(shard));
  }

  /** I3: epochs rise for a shard, as they are given. */
  granted(shards: readonly { readonly key?: string; readonly epoch?: bigint }[]): void {
    for (const { key = "", epoch = 0n } of shards) {
      const highest = this.#granted.get(key) ?? 0n;
      if (epoch <= highest) {
        throw new Violation("I3", `${key} is granted at epoch ${epoch}, after ${highest}`);
      }
      this.#granted.set(key, epoch);
    }
  }

  /** I3, I4: what the store has just made durable. */
  committed({ changes }: Batch): void {
    for (const change of changes) {
      if (change.op === "delete") {
        if (change.ref.table === "server") this.#end(change.ref.incarnation);
        if (change.ref.table === "shard") this.#owners.delete(change.ref.key);
      } else if (change.row.table === "shard") this.#assigned(change.row);
      else if (change.row.table === "server") this.#live.add(change.row.incarnation);
    }
  }

  #end(incarnation: bigint): void {
    this.#live.delete(incarnation);
    this.#ended.add(incarnation);
  }

  #assigned(row: ShardRow): void {
    const before = this.#owners.get(row.key);
    this.#owners.set(row.key, row);
    if (before?.epoch === row.epoch && before.incarnation === row.incarnation) return;
    const highest = this.#epochs.get(row.key) ?? 0n;
    if (row.epoch <= highest) {
      throw new Violation("I3", `${row.key} is given at epoch ${row.epoch}, after ${highest}`);
    }
    this.#epochs.set(row.key, row.epoch);
    if (before === undefined) return;
    const wasReleased = this.#released.has(nameOf(before)) || this.#ended.has(before.incarnation);
    if (wasReleased) return;
    throw new Violation(
      "I4",
      `${row.key} goes to ${row.incarnation} though ${before.incarnation} has not released epoch ${before.epoch}`,
    );
  }

  /** After each step of any process. */
  step(): void {
    if (this.#world.options.guarded) this.#oneAdmits();
    else this.#noStray();
    this.#believesForward();
  }

  /** I1: for no shard would two servers admit. */
  #oneAdmits(): void {
    for (const key of this.#world.keys) {
      const servers = this.#world.servers.filter((server) => server.wouldAdmit(key));
      if (servers.length < 2) continue;
      const names = servers.map((s) => `${s.name}@${s.session.epochOf(key)}`).join(" and ");
      throw new Violation("I1", `${names} would both admit ${key}`);
    }
  }

  /** I1u: no stream is open at a proxy to another server than the committed owner. */
  #noStray(): void {
    for (const proxy of this.#world.proxies) {
      if (!proxy.alive) continue;
      for (const { request, incarnation } of proxy.attempts()) {
        const owner = this.#owners.get(request.key);
        if (owner === undefined || owner.incarnation === incarnation) continue;
        if (owner.movingSince !== 0n || !this.#live.has(owner.incarnation)) continue;
        throw new Violation(
          "I1u",
          `${proxy.name} has a stream of ${request.key} open to ${incarnation}, the owner is ${owner.incarnation}`,
        );
      }
    }
  }

  /** I9: a proxy applies no older epoch over a newer. */
  #believesForward(): void {
    for (const proxy of this.#world.proxies) {
      if (!proxy.alive) continue;
      for (const key of this.#world.keys) {
        const epoch = proxy.machine.answerFor("world", key)?.epoch;
        if (epoch === undefined) continue;
        const name = `${proxy.name}/${proxy.life}/${key}`;
        const before = this.#believed.get(name) ?? 0n;
        if (epoch < before) {
          throw new Violation(
            "I9",
            `${proxy.name} goes back from ${before} to ${epoch} for ${key}`,
          );
        }
        this.#believed.set(name, epoch);
      }
    }
  }

  /** I6: a request sent again runs at most once. Guarded only: a stray reaches an unguarded handler. */
  began(request: number, attempt: number): void {
    this.#ranAttempts.add(attempt);
    const runs = (this.#runs.get(request) ?? 0) + 1;
    this.#runs.set(request, runs);
    if (runs > 1) throw new Violation("I6", `request ${request} runs ${runs} times`);
  }

  /** I6: no 421 after a handler began. */
  refused(attempt: number): void {
    if (!this.#ranAttempts.has(attempt)) return;
    throw new Violation("I6", `attempt ${attempt} is refused after its handler began`);
  }

  /** I7: an answer carries the epoch that is current: none goes out after one of a higher epoch. */
  answered(key: string, epoch: bigint): void {
    const highest = this.#answeredEpochs.get(key) ?? 0n;
    if (epoch < highest) {
      throw new Violation("I7", `${key} is answered at epoch ${epoch} after one at ${highest}`);
    }
    this.#answeredEpochs.set(key, epoch);
  }
}
