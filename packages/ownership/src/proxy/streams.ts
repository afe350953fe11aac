import type { ProxyRequest, StreamId } from "./event.ts";

export interface OpenStream {
  readonly request: ProxyRequest;
  readonly incarnation: bigint;
  readonly epoch: bigint;
}

/** A move of an unguarded shard for which this proxy has still to say `quiet` (P3). */
export interface QuietOwed {
  readonly service: string;
  readonly key: string;
  readonly epoch: bigint;
  readonly incarnation: bigint;
  /** Drain deadline: what is open then is reset. */
  readonly until: number;
}

const nameOf = (service: string, key: string): string => `${service}\n${key}`;

/** Streams to servers, and what is owed about them. */
export class Streams {
  readonly #open = new Map<StreamId, OpenStream>();
  readonly #byShard = new Map<string, Set<StreamId>>();
  readonly #owed = new Map<string, QuietOwed>();

  get(id: StreamId): OpenStream | undefined {
    return this.#open.get(id);
  }

  all(): Iterable<OpenStream> {
    return this.#open.values();
  }

  owed(): Iterable<QuietOwed> {
    return this.#owed.values();
  }

  open(stream: OpenStream): void {
    const { id, service, key } = stream.request;
    this.#open.set(id, stream);
    const name = nameOf(service, key);
    const ids = this.#byShard.get(name) ?? new Set();
    this.#byShard.set(name, ids.add(id));
  }

  /** The stream that was open, if it was. */
  close(id: StreamId): OpenStream | undefined {
    const stream = this.#open.get(id);
    if (stream === undefined) return undefined;
    this.#open.delete(id);
    const name = nameOf(stream.request.service, stream.request.key);
    const ids = this.#byShard.get(name);
    ids?.delete(id);
    if (ids?.size === 0) this.#byShard.delete(name);
    return stream;
  }

  /** Open streams that were picked on that answer or an older one. */
  pickedOn(owed: Pick<QuietOwed, "service" | "key" | "epoch">): StreamId[] {
    const ids = Array.from(this.#byShard.get(nameOf(owed.service, owed.key)) ?? []);
    return ids.filter((id) => (this.#open.get(id)?.epoch ?? 0n) <= owed.epoch);
  }

  owe(owed: QuietOwed): void {
    this.#owed.set(nameOf(owed.service, owed.key), owed);
  }

  /** What has become quiet, taken out. */
  takeQuiet(): QuietOwed[] {
    const quiet = Array.from(this.#owed.values()).filter((o) => this.pickedOn(o).length === 0);
    for (const { service, key } of quiet) this.#owed.delete(nameOf(service, key));
    return quiet;
  }
}
