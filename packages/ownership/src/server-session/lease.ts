/** Renewals whose answers may still come; older ones count no more. */
const PENDING_MAX = 16;
/** A lost renewal must not cost the lease: there are three tries in it. */
const RENEWALS_PER_LEASE = 3;

/**
 * The lease as its holder sees it (S2): the deadline is the time read before the renewal was handed
 * to the transport, plus L, minus margin. Never the time of the answer.
 */
export class HeldLease {
  #deadline = Number.NEGATIVE_INFINITY;
  #leaseMs = 0;
  #marginMs = 0;
  #nextRenewal = Number.POSITIVE_INFINITY;
  #nonce = 0;
  readonly #sentAt = new Map<number, number>();

  get deadline(): number {
    return this.#deadline;
  }

  /** When the next renewal is to be sent; Infinity: none is. */
  get nextRenewal(): number {
    return this.#nextRenewal;
  }

  lives(now: number): boolean {
    return now < this.#deadline;
  }

  /** L and margin of a new incarnation, whose registration was sent at `sentAt`. */
  begin(terms: { readonly leaseMs: number; readonly marginMs: number }, sentAt: number): void {
    this.#leaseMs = terms.leaseMs;
    this.#marginMs = terms.marginMs;
    this.#deadline = this.#deadlineOf(sentAt);
  }

  renewNow(now: number): void {
    this.#nextRenewal = now;
  }

  /** To be called with the clock read before the frame is handed on. */
  sent(now: number): number {
    this.#nonce = (this.#nonce + 1) >>> 0;
    const [oldest] = this.#sentAt.keys();
    if (oldest !== undefined && this.#sentAt.size >= PENDING_MAX) this.#sentAt.delete(oldest);
    this.#sentAt.set(this.#nonce, now);
    this.#nextRenewal = now + this.#leaseMs / RENEWALS_PER_LEASE;
    return this.#nonce;
  }

  /** An answer may revive a lease that is over (S5). */
  answered(nonce: number): void {
    const sentAt = this.#sentAt.get(nonce);
    if (sentAt === undefined) return;
    this.#sentAt.delete(nonce);
    this.#deadline = Math.max(this.#deadline, this.#deadlineOf(sentAt));
  }

  /** The connection is gone: no answer comes any more, none is asked for. */
  pause(): void {
    this.#sentAt.clear();
    this.#nextRenewal = Number.POSITIVE_INFINITY;
  }

  end(): void {
    this.pause();
    this.#deadline = Number.NEGATIVE_INFINITY;
  }

  #deadlineOf(sentAt: number): number {
    return sentAt + this.#leaseMs - this.#marginMs;
  }
}
