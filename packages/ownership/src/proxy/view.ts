import type { FrameOf } from "../frame-init.ts";

type FeedBatch = FrameOf<"feedBatch">;
type Entry = NonNullable<FeedBatch["entries"][number]["entry"]>;
type EntryOf<Case> = Extract<Entry, { case: Case }> extends { value: infer Value } ? Value : never;

export interface Answer {
  readonly incarnation: bigint;
  readonly epoch: bigint;
}

export interface ServiceView {
  facts: EntryOf<"service">;
  readonly servers: Map<bigint, EntryOf<"server">>;
  readonly answers: Map<string, Answer>;
  /** Keys on the move, as far as this proxy has to do with them: requests are parked. */
  readonly moving: Set<string>;
}

/** What came with a batch that its reader has to act on. */
export interface Applied {
  readonly moved: { service: ServiceView; entry: EntryOf<"shardMoving"> }[];
  readonly ended: { service: ServiceView; incarnation: bigint }[];
  /** Keys whose parked requests may go on. */
  readonly settled: { service: string; key: string }[];
}

/** What a proxy knows by the feed and by answers (P2, I9). */
export class View {
  readonly services = new Map<string, ServiceView>();
  /** Revision of the last batch that was applied in full. */
  revision = 0n;
  term = 0n;
  ready = false;
  #inSnapshot = false;

  /** The connection is new: half a snapshot counts for nothing. */
  restart(): void {
    this.#inSnapshot = false;
  }

  forget(): void {
    this.services.clear();
    this.revision = 0n;
    this.ready = false;
    this.#inSnapshot = false;
  }

  /** Undefined: the chain of revisions or terms is broken, a new session with a snapshot is needed. */
  apply(batch: FeedBatch): Applied | undefined {
    if (batch.term < this.term) return undefined;
    if (batch.snapshot && !this.#inSnapshot) {
      this.services.clear();
      this.#inSnapshot = true;
    }
    if (!batch.snapshot && batch.previous !== this.revision) return undefined;
    this.term = batch.term;
    const applied: Applied = { moved: [], ended: [], settled: [] };
    for (const { entry } of batch.entries) this.#enter(entry, applied);
    if (batch.snapshot && !batch.complete) return applied;
    this.#inSnapshot = false;
    this.revision = batch.revision;
    this.ready = true;
    return applied;
  }

  /** I9: no older epoch over a newer one. False: it names an incarnation that has ended. */
  learn(serviceName: string, key: string, answer: Answer): boolean {
    const service = this.services.get(serviceName);
    if (service === undefined || !service.servers.has(answer.incarnation)) return false;
    const known = service.answers.get(key);
    if (known === undefined || known.epoch <= answer.epoch) service.answers.set(key, answer);
    service.moving.delete(key);
    return true;
  }

  #enter(entry: Entry, applied: Applied): void {
    if (entry.case === "service") this.#service(entry.value);
    else if (entry.case === "serviceRemoved") this.services.delete(entry.value.name);
    else if (entry.case === "server") this.#server(entry.value);
    else if (entry.case === "serverEnded") this.#ended(entry.value, applied);
    else if (entry.case === "shardMoving") this.#moving(entry.value, applied);
    else if (entry.case === "shardOwner") this.#owner(entry.value, applied);
    else if (entry.case === "shardFree") this.#free(entry.value, applied);
  }

  #service(facts: EntryOf<"service">): void {
    const known = this.services.get(facts.name);
    if (known !== undefined) {
      known.facts = facts;
      return;
    }
    this.services.set(facts.name, {
      facts,
      servers: new Map(),
      answers: new Map(),
      moving: new Set(),
    });
  }

  #server(server: EntryOf<"server">): void {
    this.services.get(server.service)?.servers.set(server.incarnation, server);
  }

  #ended({ service: name, incarnation }: EntryOf<"serverEnded">, applied: Applied): void {
    const service = this.services.get(name);
    if (service === undefined) return;
    // Every answer that names it is void: they are looked up by incarnation.
    service.servers.delete(incarnation);
    applied.ended.push({ service, incarnation });
  }

  #moving(entry: EntryOf<"shardMoving">, applied: Applied): void {
    const service = this.services.get(entry.service);
    if (service === undefined) return;
    const known = service.answers.get(entry.key);
    if (known !== undefined && known.epoch <= entry.epoch) {
      service.answers.delete(entry.key);
      service.moving.add(entry.key);
    }
    applied.moved.push({ service, entry });
  }

  #owner(entry: EntryOf<"shardOwner">, applied: Applied): void {
    const service = this.services.get(entry.service);
    if (service?.moving.has(entry.key) !== true) return;
    this.learn(entry.service, entry.key, entry);
    service.moving.delete(entry.key);
    applied.settled.push(entry);
  }

  #free(entry: EntryOf<"shardFree">, applied: Applied): void {
    const service = this.services.get(entry.service);
    const known = service?.answers.get(entry.key);
    if (known !== undefined && known.epoch <= entry.epoch) service?.answers.delete(entry.key);
    if (service?.moving.delete(entry.key) === true) applied.settled.push(entry);
  }
}
