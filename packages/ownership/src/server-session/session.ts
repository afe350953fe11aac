import type { FrameBody } from "@belay/protocol";
import type { FrameOf } from "../frame-init.ts";
import { Admissions } from "./admissions.ts";
import { Confirmations } from "./confirmations.ts";
import type {
  Admission,
  Decision,
  RequestId,
  ResetReason,
  ServerSession,
  ServerSessionConfig,
  ServerSessionEffect,
  ServerSessionEvent,
  ServerSessionLimits,
} from "./event.ts";
import { HeldLease } from "./lease.ts";
import { Ledger } from "./ledger.ts";
import { type Phase, PHASE_TABLE, type PhaseEvent } from "./registration.ts";
import { SessionCore } from "./session-core.ts";
import { answerIdle, cutOverdue, hold, revoke } from "./shards.ts";

export const SERVER_SESSION_LIMITS: ServerSessionLimits = { requests: 100_000, confirms: 10_000 };

const RETRY_MS_MIN = 100;
/** Refusals of a registration that time can change. */
const PASSING: ReadonlySet<string> = new Set([
  "service-unknown",
  "server-id-taken",
  "address-taken",
  "too-many-servers",
  "busy",
]);

/** What a session is made of; the simulator puts faulty ones in their place. */
export interface ServerSessionParts {
  readonly lease: HeldLease;
  readonly ledger: Ledger;
}

/** A server's side of ownership, not yet connected. */
export function createServerSession(
  config: ServerSessionConfig,
  parts: Partial<ServerSessionParts> = {},
): ServerSession {
  return new ServerSessionMachine(config, parts);
}

class ServerSessionMachine implements ServerSession {
  readonly #core: SessionCore;
  readonly #admissions: Admissions;
  #phase: Phase = "registering";
  /** The same for every try of one registration: an answer may have been lost on the way. */
  #secret: Uint8Array | undefined;
  #previous: { readonly incarnation: bigint; readonly secret: Uint8Array } | undefined;
  /** Register or Resume in flight. */
  #request: { readonly id: number; readonly sentAt: number } | undefined;
  #retryAt = Number.POSITIVE_INFINITY;
  /** True while answers may go out: its end is acted on once (S5). */
  #alive = false;
  #draining = false;
  #drainedTold = false;
  #requestsPerSecond = 0;

  constructor(config: ServerSessionConfig, parts: Partial<ServerSessionParts>) {
    const limits = { ...SERVER_SESSION_LIMITS, ...config.limits };
    const lease = parts.lease ?? new HeldLease();
    this.#core = new SessionCore(config, lease, parts.ledger ?? new Ledger());
    this.#admissions = new Admissions(this.#core, new Confirmations(limits.confirms), limits);
  }

  get incarnation(): bigint {
    return this.#core.incarnation;
  }

  get leaseLeftMs(): number {
    return Math.max(0, this.#core.lease.deadline - this.#core.now());
  }

  get heldShards(): number {
    return this.#core.ledger.heldCount;
  }

  epochOf(key: string): bigint {
    return this.#core.ledger.held(key)?.epoch ?? 0n;
  }

  setLoad(requestsPerSecond: number): void {
    this.#requestsPerSecond = requestsPerSecond;
  }

  take(): readonly ServerSessionEffect[] {
    const { effects } = this.#core;
    this.#core.effects = [];
    return effects;
  }

  wakeAt(): number {
    let at = Math.min(this.#retryAt, this.#core.lease.nextRenewal, this.#admissions.nextTimeout);
    if (this.#alive) at = Math.min(at, this.#core.lease.deadline);
    for (const shard of this.#core.ledger.draining()) at = Math.min(at, shard.drainUntil ?? at);
    return at;
  }

  handle(event: ServerSessionEvent): void {
    this.#checkLease();
    switch (event.type) {
      case "connected":
        this.#connect();
        break;
      case "disconnected":
        this.#disconnect();
        break;
      case "frame":
        this.#frame(event.frame);
        break;
      case "tick":
        this.#tick();
        break;
      case "drain":
        this.#drain();
        break;
      case "leave":
        this.#leave();
        break;
    }
  }

  admit(admission: Admission): Decision {
    this.#checkLease();
    return this.#admissions.admit(admission);
  }

  mayAnswer(id: RequestId): boolean {
    return this.#admissions.mayAnswer(id);
  }

  end(id: RequestId): void {
    this.#admissions.forget(id);
    this.#core.end(id);
  }

  #step(event: PhaseEvent): void {
    this.#phase = PHASE_TABLE[this.#phase][event];
  }

  #connect(): void {
    this.#core.connected = true;
    this.#step("connected");
    if (this.#phase === "registering") this.#register();
    if (this.#phase === "registered") this.#resume();
    if (this.#phase === "leaving") this.#sendLeave();
  }

  #disconnect(): void {
    this.#core.connected = false;
    this.#request = undefined;
    this.#retryAt = Number.POSITIVE_INFINITY;
    this.#core.lease.pause();
    this.#admissions.refuseWaiting("unknown");
  }

  #register(): void {
    if (!this.#core.connected) return;
    this.#retryAt = Number.POSITIVE_INFINITY;
    const { service, serverId, address, zone, guarded, capacity } = this.#core.config;
    const secret = this.#secretNow();
    const id = this.#core.nextRequestId();
    // S2: the clock is read before the frame is handed on.
    this.#request = { id, sentAt: this.#core.now() };
    this.#core.send({
      case: "register",
      value: {
        requestId: id,
        service,
        serverId,
        address,
        zone,
        guarded,
        capacity,
        secret,
        previousIncarnation: this.#previous?.incarnation ?? 0n,
        previousSecret: this.#previous?.secret ?? new Uint8Array(0),
      },
    });
  }

  #secretNow(): Uint8Array {
    this.#secret ??= this.#core.config.newSecret();
    return this.#secret;
  }

  #resume(): void {
    const id = this.#core.nextRequestId();
    this.#request = { id, sentAt: this.#core.now() };
    this.#core.send({
      case: "resume",
      value: { requestId: id, incarnation: this.#core.incarnation, secret: this.#secretNow() },
    });
  }

  #sendLeave(): void {
    this.#core.send({
      case: "leave",
      value: { incarnation: this.#core.incarnation, secret: this.#secretNow() },
    });
  }

  #frame(frame: FrameBody): void {
    if (frame.case === "registered") this.#registered(frame.value);
    else if (frame.case === "problem") this.#problem(frame.value);
    // An answer to a former life means nothing (G2).
    else if (this.#isMine(frame)) this.#own(frame);
  }

  #isMine(frame: FrameBody): boolean {
    return "incarnation" in frame.value && frame.value.incarnation === this.#core.incarnation;
  }

  #own(frame: FrameBody): void {
    const core = this.#core;
    if (frame.case === "serverLease") this.#renewed(frame.value);
    else if (frame.case === "grant") this.#granted(frame.value);
    else if (frame.case === "confirmed") this.#confirmed(frame.value);
    else if (frame.case === "revoke") revoke(core, frame.value);
    else if (frame.case === "askRelease") answerIdle(core, frame.value);
    else if (frame.case === "releaseAck") this.#acknowledged(frame.value);
    else if (frame.case === "drainProgress") this.#progress(frame.value.remaining);
    else if (frame.case === "serverExpired") this.#expired(frame.value.reason);
    else if (frame.case === "serverEnded") this.#ended();
  }

  #granted({ shards, asOf }: FrameOf<"grant">): void {
    this.#core.sawRevision(asOf);
    for (const shard of shards) hold(this.#core, shard);
  }

  #confirmed(frame: FrameOf<"confirmed">): void {
    this.#core.sawRevision(frame.asOf);
    if (frame.owned) hold(this.#core, frame);
    this.#admissions.confirmed(frame);
  }

  #acknowledged({ shards }: FrameOf<"releaseAck">): void {
    for (const { key, epoch } of shards) this.#core.ledger.acknowledged(key, epoch);
  }

  #registered(frame: FrameOf<"registered">): void {
    const request = this.#request;
    if (request === undefined || request.id !== frame.requestId) return;
    this.#request = undefined;
    const isNew = frame.incarnation !== this.#core.incarnation;
    this.#step("registered");
    this.#core.sawRevision(frame.asOf);
    if (isNew) {
      this.#core.incarnation = frame.incarnation;
      this.#previous = undefined;
      this.#core.lease.begin(frame, request.sentAt);
      this.#alive = this.#core.lease.lives(this.#core.now());
      this.#core.effects.push({
        type: "registered",
        incarnation: frame.incarnation,
        leaseMs: frame.leaseMs,
      });
    }
    this.#renew();
    const givenUp = this.#core.ledger.givenUp();
    if (givenUp.length > 0) this.#core.sendRelease(givenUp);
    if (this.#draining) this.#sendDrain();
  }

  #problem(frame: FrameOf<"problem">): void {
    const { code, message } = frame;
    if (this.#request === undefined || frame.requestId !== this.#request.id) return;
    this.#request = undefined;
    // The proof is not believed: the predecessor's lease has to end by itself (S3).
    if (code === "wrong-secret") this.#previous = undefined;
    if (code !== "wrong-secret" && !PASSING.has(code)) {
      this.#step("refused");
      this.#core.effects.push({ type: "refused", code, message });
      return;
    }
    const retryAfterMs = Math.max(frame.retryAfterMs, RETRY_MS_MIN);
    this.#retryAt = this.#core.now() + retryAfterMs;
    this.#core.effects.push({ type: "waiting", code, message, retryAfterMs });
  }

  #expired(reason: string): void {
    const incarnation = this.#core.incarnation;
    this.#previous = { incarnation, secret: this.#secretNow() };
    this.#secret = undefined;
    this.#step("expired");
    this.#forget("expired");
    this.#core.effects.push({ type: "expired", incarnation, reason });
    if (this.#phase === "registering") this.#register();
    else this.#core.effects.push({ type: "ended" });
  }

  #ended(): void {
    this.#step("ended");
    this.#forget("expired");
    this.#core.effects.push({ type: "ended" });
  }

  /** S5: what the incarnation held is discarded. */
  #forget(reason: ResetReason): void {
    this.#core.reset(this.#core.ledger.allRunning(), reason);
    this.#core.ledger.clear();
    this.#core.lease.end();
    this.#alive = false;
    this.#core.incarnation = 0n;
    this.#admissions.refuseWaiting("expired");
  }

  #renew(): void {
    const nonce = this.#core.lease.sent(this.#core.now());
    this.#core.send({
      case: "renewServerLease",
      value: {
        nonce,
        incarnation: this.#core.incarnation,
        load: {
          requestsPerSecond: this.#requestsPerSecond,
          openStreams: this.#core.ledger.runningCount,
          shards: this.#core.ledger.heldCount,
        },
      },
    });
  }

  #renewed(frame: FrameOf<"serverLease">): void {
    this.#core.lease.answered(frame.nonce);
    this.#core.sawRevision(frame.asOf);
    this.#alive = this.#core.lease.lives(this.#core.now());
  }

  /** S5: at the deadline everything that runs is cut; what is held stays, an answer may revive it. */
  #checkLease(): void {
    if (!this.#alive || this.#core.lease.lives(this.#core.now())) return;
    this.#alive = false;
    this.#core.cut(this.#core.ledger.allRunning(), "lease-over");
  }

  #tick(): void {
    const now = this.#core.now();
    this.#admissions.timedOut();
    if (this.#phase === "registering" && this.#retryAt <= now) this.#register();
    if (this.#phase === "registered" && this.#core.lease.nextRenewal <= now) this.#renew();
    cutOverdue(this.#core);
  }

  #drain(): void {
    this.#draining = true;
    if (this.#phase === "registered") this.#sendDrain();
    else this.#progress(0);
  }

  #sendDrain(): void {
    if (this.#request !== undefined) return;
    this.#core.send({ case: "startDrain", value: { incarnation: this.#core.incarnation } });
  }

  #progress(remaining: number): void {
    this.#core.effects.push({ type: "draining", remaining });
    if (remaining > 0 || !this.#draining || this.#drainedTold) return;
    this.#drainedTold = true;
    this.#core.effects.push({ type: "drained" });
  }

  /** The incarnation ends at the coordinator: from here on nothing is admitted or answered. */
  #leave(): void {
    const had = this.#phase;
    this.#step("leave");
    if (this.#phase === had) return;
    this.#core.reset(this.#core.ledger.allRunning(), "released");
    this.#core.ledger.clear();
    this.#core.lease.end();
    this.#alive = false;
    this.#admissions.refuseWaiting("not-ready");
    if (this.#phase === "leaving") this.#sendLeave();
    else this.#core.effects.push({ type: "ended" });
  }
}
