import type { FeedBatch, FeedEntry } from "@belay/protocol";

/** A registered server whose incarnation has not ended. */
interface KnownServer {
  readonly service: string;
  readonly id: string;
  readonly incarnation: bigint;
  readonly address: string;
}

/** Servers that one feed may name; a longer one is broken. */
const serversMax = 1_000_000;

/** What a batch did to the book; `changed` names services of which a server or a fact changed. */
export type Applied =
  | { readonly ok: true; readonly changed: ReadonlySet<string> }
  /** A gap or a broken feed: a new session with a snapshot is needed (P2). */
  | { readonly ok: false; readonly why: string };

const nothing: ReadonlySet<string> = new Set();

class Table {
  readonly servers = new Map<string, KnownServer>();
  readonly byService = new Map<string, Map<string, KnownServer>>();
  /** Name → guarded. */
  readonly services = new Map<string, boolean>();
}

/**
 * The servers of every service as the coordinator's feed tells them, for EDS. An address is listed
 * until its incarnation has ended, draining or not. What was known stays until a new snapshot is
 * complete, so that a coordinator's restart empties nothing (xDS rule 7).
 */
export class EndpointBook {
  #table = new Table();
  #coming: Table | undefined;
  #revision = 0n;
  #complete = false;

  /** Highest revision applied without a gap; 0: none, a snapshot is wanted (F1). */
  get revision(): bigint {
    return this.#complete && this.#coming === undefined ? this.#revision : 0n;
  }

  /** True once a whole snapshot was seen. */
  get complete(): boolean {
    return this.#complete;
  }

  get serverCount(): number {
    return this.#table.servers.size;
  }

  /** Services that the coordinator knows: name → guarded. */
  get services(): ReadonlyMap<string, boolean> {
    return this.#table.services;
  }

  addressesOf(service: string): string[] {
    return [...(this.#table.byService.get(service)?.values() ?? [])].map(({ address }) => address);
  }

  countOf(service: string): number {
    return this.#table.byService.get(service)?.size ?? 0;
  }

  /** Takes one batch; `changed` names the services whose servers may differ now. */
  apply(batch: FeedBatch): Applied {
    if (batch.snapshot) return this.#applySnapshot(batch);
    if (this.#coming !== undefined) return { ok: false, why: "a batch inside a snapshot" };
    if (batch.previous !== this.#revision) {
      return {
        ok: false,
        why: `a batch after ${batch.previous}, but ${this.#revision} was the last`,
      };
    }
    const changed = new Set<string>();
    for (const entry of batch.entries) applyEntry(this.#table, entry, changed);
    this.#revision = batch.revision;
    return this.#table.servers.size > serversMax
      ? { ok: false, why: "too many servers" }
      : { ok: true, changed };
  }

  #applySnapshot(batch: FeedBatch): Applied {
    this.#coming ??= new Table();
    const coming = this.#coming;
    for (const entry of batch.entries) applyEntry(coming, entry, new Set());
    if (coming.servers.size > serversMax) return { ok: false, why: "too many servers" };
    if (!batch.complete) return { ok: true, changed: nothing };
    const before = this.#table;
    this.#table = coming;
    this.#coming = undefined;
    this.#revision = batch.revision;
    this.#complete = true;
    const services = [...before.services.keys(), ...coming.services.keys()];
    return {
      ok: true,
      changed: new Set([...services, ...before.byService.keys(), ...coming.byService.keys()]),
    };
  }

  /** A new session: a snapshot that had begun is void. */
  restart(): void {
    this.#coming = undefined;
  }

  /** The next session must begin with a snapshot; what is known stays until that is complete. */
  forgetRevision(): void {
    this.#coming = undefined;
    this.#revision = 0n;
  }
}

function applyEntry(table: Table, { entry }: FeedEntry, changed: Set<string>): void {
  if (entry.case === "service") changed.add(entry.value.name);
  if (entry.case === "service") table.services.set(entry.value.name, entry.value.guarded);
  if (entry.case === "serviceRemoved") table.services.delete(entry.value.name);
  if (entry.case === "server") {
    const { service, serverId: id, incarnation, address } = entry.value;
    add(table, { service, id, incarnation, address });
    changed.add(service);
  }
  if (entry.case === "serverEnded") {
    const { service, serverId, incarnation } = entry.value;
    const key = keyOf(service, serverId);
    const known = table.servers.get(key);
    // An entry about an earlier life of the id says nothing of the one that lives.
    if (known === undefined || known.incarnation > incarnation) return;
    table.servers.delete(key);
    const servers = table.byService.get(service);
    servers?.delete(serverId);
    if (servers?.size === 0) table.byService.delete(service);
    changed.add(service);
  }
}

const keyOf = (service: string, id: string): string => `${service}\0${id}`;

function add(table: Table, server: KnownServer): void {
  table.servers.set(keyOf(server.service, server.id), server);
  const servers = table.byService.get(server.service) ?? new Map<string, KnownServer>();
  servers.set(server.id, server);
  table.byService.set(server.service, servers);
}
