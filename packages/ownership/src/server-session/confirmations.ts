import type { Admission } from "./event.ts";

interface Pending {
  readonly requestId: number;
  readonly key: string;
  readonly until: number;
  readonly waiting: Admission[];
}

/** G2: one question per key at a time, however many requests wait for its answer. */
export class Confirmations {
  readonly #keysMax: number;
  readonly #byKey = new Map<string, Pending>();

  constructor(keysMax: number) {
    this.#keysMax = keysMax;
  }

  get waitingCount(): number {
    let count = 0;
    for (const pending of this.#byKey.values()) count += pending.waiting.length;
    return count;
  }

  /** When the oldest question counts as unanswered. */
  get nextTimeout(): number {
    const [oldest] = this.#byKey.values();
    return oldest?.until ?? Number.POSITIVE_INFINITY;
  }

  /** True: the admission waits for a question that was asked already. */
  join(key: string, admission: Admission): boolean {
    const pending = this.#byKey.get(key);
    pending?.waiting.push(admission);
    return pending !== undefined;
  }

  /** False: too many keys wait. */
  ask(pending: Omit<Pending, "waiting">, admission: Admission): boolean {
    if (this.#byKey.size >= this.#keysMax) return false;
    this.#byKey.set(pending.key, { ...pending, waiting: [admission] });
    return true;
  }

  /** Those who waited for this answer; none if it is not one that is awaited. */
  answered(key: string, requestId: number): readonly Admission[] {
    const pending = this.#byKey.get(key);
    if (pending?.requestId !== requestId) return [];
    this.#byKey.delete(key);
    return pending.waiting;
  }

  timedOut(now: number): readonly Admission[] {
    const late: Admission[] = [];
    for (const pending of this.#byKey.values()) {
      if (pending.until > now) break;
      this.#byKey.delete(pending.key);
      late.push(...pending.waiting);
    }
    return late;
  }

  /** All who wait: the connection is gone, or the incarnation has ended. */
  clear(): readonly Admission[] {
    const all = Array.from(this.#byKey.values()).flatMap((pending) => pending.waiting);
    this.#byKey.clear();
    return all;
  }

  /** The request is over before it was decided. */
  forget(id: number): void {
    for (const { waiting } of this.#byKey.values()) {
      const index = waiting.findIndex((admission) => admission.id === id);
      if (index >= 0) waiting.splice(index, 1);
    }
  }
}
