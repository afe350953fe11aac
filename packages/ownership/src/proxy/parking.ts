import type { ProxyRequest } from "./event.ts";

export interface Parked {
  readonly request: ProxyRequest;
  readonly until: number;
  /** Tries at newly learned owners so far (R2). */
  readonly tries: number;
}

export interface Question {
  readonly service: string;
  readonly key: string;
  /** R1 */
  minRevision: bigint;
  /** 0: none in flight. */
  requestId: number;
  /** P5: not asked again before. */
  askAt: number;
  readonly parked: Parked[];
}

const nameOf = (service: string, key: string): string => `${service}\n${key}`;

/** Requests that wait, by shard; at most one resolve each is in flight (P5). */
export class Parking {
  readonly #questions = new Map<string, Question>();

  get size(): number {
    let size = 0;
    for (const { parked } of this.#questions.values()) size += parked.length;
    return size;
  }

  questions(): Iterable<Question> {
    return this.#questions.values();
  }

  of(service: string, key: string): Question | undefined {
    return this.#questions.get(nameOf(service, key));
  }

  park(parked: Parked, minRevision: bigint): Question {
    const { service, key } = parked.request;
    const known = this.of(service, key);
    const question = known ?? { service, key, minRevision, requestId: 0, askAt: 0, parked: [] };
    if (known === undefined) this.#questions.set(nameOf(service, key), question);
    if (minRevision > question.minRevision) question.minRevision = minRevision;
    question.parked.push(parked);
    return question;
  }

  byRequestId(requestId: number): Question | undefined {
    return Array.from(this.#questions.values()).find((q) => q.requestId === requestId);
  }

  take(service: string, key: string): readonly Parked[] {
    const question = this.of(service, key);
    this.#questions.delete(nameOf(service, key));
    return question?.parked ?? [];
  }

  /** The connection is gone, and every answer with it. */
  lost(): void {
    for (const question of this.#questions.values()) question.requestId = 0;
  }

  remove(id: number): void {
    for (const [name, question] of this.#questions) {
      const index = question.parked.findIndex(({ request }) => request.id === id);
      if (index >= 0) question.parked.splice(index, 1);
      if (question.parked.length === 0) this.#questions.delete(name);
    }
  }

  expired(now: number): readonly Parked[] {
    const late = Array.from(this.#questions.values()).flatMap(({ parked }) =>
      parked.filter(({ until }) => until <= now),
    );
    for (const { request } of late) this.remove(request.id);
    return late;
  }
}
