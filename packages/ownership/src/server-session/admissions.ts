import type { FrameOf } from "../frame-init.ts";
import type { Confirmations } from "./confirmations.ts";
import type {
  Admission,
  Decision,
  Refusal,
  RefusalReason,
  RequestId,
  ServerSessionLimits,
} from "./event.ts";
import type { SessionCore } from "./session-core.ts";

/** An unanswered question is a refusal after this long (G3). */
const CONFIRM_MS_MAX = 1000;

/** Who may enter (G1-G4). */
export class Admissions {
  readonly #core: SessionCore;
  readonly #confirmations: Confirmations;
  readonly #requestsMax: number;

  constructor(core: SessionCore, confirmations: Confirmations, limits: ServerSessionLimits) {
    this.#core = core;
    this.#confirmations = confirmations;
    this.#requestsMax = limits.requests;
  }

  get nextTimeout(): number {
    return this.#confirmations.nextTimeout;
  }

  admit(admission: Admission): Decision {
    const decision = this.#judge(admission);
    return decision.type === "ask" ? this.#ask(admission) : decision;
  }

  mayAnswer(id: RequestId): boolean {
    const { ledger, lease } = this.#core;
    const request = ledger.running(id);
    if (request === undefined || !lease.lives(this.#core.now())) return false;
    return request.key === undefined || ledger.held(request.key)?.epoch === request.epoch;
  }

  forget(id: RequestId): void {
    this.#confirmations.forget(id);
  }

  /** G2: who waited for this answer is judged by what is held now. */
  confirmed({ key, requestId }: FrameOf<"confirmed">): void {
    this.#decide(this.#confirmations.answered(key, requestId), "moved");
  }

  timedOut(): void {
    this.#decide(this.#confirmations.timedOut(this.#core.now()), "unknown");
  }

  /** No answer will come: the connection is gone, or the incarnation has ended. */
  refuseWaiting(reason: RefusalReason): void {
    this.#decide(this.#confirmations.clear(), reason);
  }

  /** G1, G3, G4: what is known here; `ask` if only the coordinator knows. */
  #judge(admission: Admission): Decision {
    const { ledger, lease, incarnation } = this.#core;
    const { key, epoch } = admission;
    if (incarnation === 0n || ledger.runningCount >= this.#requestsMax) {
      return this.#refusal(admission, "not-ready");
    }
    if (admission.incarnation !== incarnation) return this.#refusal(admission, "unknown");
    if (!lease.lives(this.#core.now())) return this.#refusal(admission, "expired");
    if (key === undefined) return this.#admitted(admission, 0n);
    const held = ledger.held(key);
    if (held !== undefined && epoch <= held.epoch) {
      const isActive = held.drainUntil === undefined;
      return isActive ? this.#admitted(admission, held.epoch) : this.#refusal(admission, "moved");
    }
    const isGivenUp = epoch > 0n && epoch <= ledger.givenUpEpoch(key);
    return isGivenUp ? this.#refusal(admission, "moved") : { type: "ask" };
  }

  #admitted({ id, kind, key }: Admission, epoch: bigint): Decision {
    this.#core.ledger.begin({ id, kind, key, epoch });
    return { type: "admit", epoch };
  }

  /** as-of = max(epoch held or given up, last confirmed revision, my registration) (G4). */
  #refusal({ incarnation, key }: Admission, reason: RefusalReason): Refusal {
    const { ledger } = this.#core;
    let { asOf } = this.#core;
    const epochs =
      key === undefined ? [] : [ledger.held(key)?.epoch ?? 0n, ledger.givenUpEpoch(key)];
    for (const epoch of epochs) if (epoch > asOf) asOf = epoch;
    return { type: "refuse", incarnation: incarnation ?? this.#core.incarnation, asOf, reason };
  }

  #ask(admission: Admission): Decision {
    const { key } = admission;
    const core = this.#core;
    // The coordinator is silent: refused with what is known here (G3).
    if (key === undefined || !core.connected) return this.#refusal(admission, "unknown");
    if (this.#confirmations.waitingCount >= this.#requestsMax) {
      return this.#refusal(admission, "not-ready");
    }
    if (this.#confirmations.join(key, admission)) return { type: "ask" };
    const requestId = core.nextRequestId();
    const until = core.now() + CONFIRM_MS_MAX;
    if (!this.#confirmations.ask({ requestId, key, until }, admission)) {
      return this.#refusal(admission, "not-ready");
    }
    core.send({ case: "confirm", value: { requestId, incarnation: core.incarnation, key } });
    return { type: "ask" };
  }

  #decide(admissions: readonly Admission[], otherwise: RefusalReason): void {
    for (const admission of admissions) {
      const judged = this.#judge(admission);
      const decision = judged.type === "ask" ? this.#refusal(admission, otherwise) : judged;
      this.#core.effects.push({ type: "decided", id: admission.id, decision });
    }
  }
}
