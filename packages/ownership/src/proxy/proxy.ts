import { type FrameBody, ResolveOutcome, Role } from "@belay/protocol";
import type { FrameOf } from "../frame-init.ts";
import type {
  ProxyModel,
  ProxyModelConfig,
  ProxyModelEffect,
  ProxyModelEvent,
  ProxyModelLimits,
  ProxyRequest,
  StreamId,
} from "./event.ts";
import { type Parked, Parking, type Question } from "./parking.ts";
import { Streams } from "./streams.ts";
import { type Answer, type Applied, type ServiceView, View } from "./view.ts";

export const PROXY_MODEL_LIMITS: ProxyModelLimits = { parked: 10_000, answers: 1_000_000 };

const PROTOCOL_VERSION = 1;
const RENEW_MS_MAX = 5000;
/** R2 */
const TRIES_MAX = 3;
/** R1: a refusal that knows less than this proxy: the server will catch up. */
const CATCH_UP_MS = 50;
const PARK_MS_DEFAULT = 12_000;

export function createProxyModel(config: ProxyModelConfig): ProxyModel {
  return new Proxy(config);
}

class Proxy implements ProxyModel {
  readonly #config: ProxyModelConfig;
  readonly #limits: ProxyModelLimits;
  readonly #view = new View();
  readonly #streams = new Streams();
  readonly #parking = new Parking();
  #effects: ProxyModelEffect[] = [];
  #connected = false;
  /** Welcome came, and what follows is of a term not lower than seen. */
  #welcomed = false;
  #generation: Uint8Array = new Uint8Array(0);
  #marginMs = 0;
  /** Time read before the last answered renewal was sent (P1). */
  #renewedAt = Number.NEGATIVE_INFINITY;
  readonly #renewals = new Map<number, number>();
  #nonce = 0;
  #nextRenewal = Number.POSITIVE_INFINITY;
  #requestId = 0;
  /** Of routed requests: how often they were sent (R2). */
  readonly #tries = new Map<StreamId, Parked>();

  constructor(config: ProxyModelConfig) {
    this.#config = config;
    this.#limits = { ...PROXY_MODEL_LIMITS, ...config.limits };
  }

  get applied(): bigint {
    return this.#view.revision;
  }

  take(): readonly ProxyModelEffect[] {
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  answerFor(serviceName: string, key: string): Answer | undefined {
    const service = this.#view.services.get(serviceName);
    if (service === undefined || !this.#believes(service)) return undefined;
    const answer = service.answers.get(key);
    return answer !== undefined && service.servers.has(answer.incarnation) ? answer : undefined;
  }

  wakeAt(): number {
    let at = this.#nextRenewal;
    for (const stream of this.#streams.all()) {
      const service = this.#view.services.get(stream.request.service);
      if (service?.facts.guarded === false) at = Math.min(at, this.#deadline(service));
    }
    for (const { until } of this.#streams.owed()) at = Math.min(at, until);
    const now = this.#now();
    for (const { parked, askAt } of this.#parking.questions()) {
      for (const { until } of parked) at = Math.min(at, until);
      if (askAt > now) at = Math.min(at, askAt);
    }
    return at;
  }

  handle(event: ProxyModelEvent): void {
    // P1: whatever comes, what the lease no longer covers is cut first.
    this.#cutOverdue();
    switch (event.type) {
      case "connected":
        this.#connect();
        break;
      case "disconnected":
        this.#connected = false;
        this.#welcomed = false;
        this.#renewals.clear();
        this.#nextRenewal = Number.POSITIVE_INFINITY;
        this.#parking.lost();
        break;
      case "frame":
        this.#frame(event.frame);
        break;
      case "tick":
        this.#tick();
        break;
      case "request":
        this.#admit({ request: event.request, until: this.#parkUntil(event.request), tries: 0 });
        break;
      case "refused":
        this.#refused(event.id, event.incarnation, event.asOf);
        break;
      case "ended":
        this.#parking.remove(event.id);
        this.#streams.close(event.id);
        this.#tries.delete(event.id);
        break;
    }
    this.#sayQuiet();
  }

  #now(): number {
    return this.#config.clock.now();
  }

  #send(frame: Extract<ProxyModelEffect, { type: "send" }>["frame"]): void {
    if (this.#connected) this.#effects.push({ type: "send", frame });
  }

  #fail(id: StreamId, reason: string): void {
    this.#effects.push({ type: "fail", id, reason });
  }

  /** P1: time read before the renewal was sent + F(service) − margin. */
  #deadline(service: ServiceView): number {
    return this.#renewedAt + service.facts.feedLeaseMs - this.#marginMs;
  }

  #believes(service: ServiceView): boolean {
    return this.#view.ready && this.#now() < this.#deadline(service);
  }

  #connect(): void {
    this.#connected = true;
    this.#view.restart();
    this.#send({
      case: "hello",
      value: {
        protocolVersion: PROTOCOL_VERSION,
        role: Role.PROXY,
        name: this.#config.name,
        processId: this.#config.processId,
        generation: this.#generation,
        revision: this.#view.revision,
        term: this.#view.term,
      },
    });
  }

  #frame(frame: FrameBody): void {
    if (frame.case === "welcome") this.#welcome(frame.value);
    else if (!this.#welcomed) return;
    else if (frame.case === "feedBatch") this.#batch(frame.value);
    else if (frame.case === "feedLease") this.#leased(frame.value);
    else if (frame.case === "resolved") this.#resolved(frame.value);
  }

  #welcome(frame: FrameOf<"welcome">): void {
    const isSame = frame.generation.every((byte, index) => byte === this.#generation[index]);
    if (isSame && this.#generation.length > 0 && frame.term < this.#view.term) {
      this.#effects.push({ type: "close", reason: "its term is lower than one seen (G2)" });
      return;
    }
    this.#welcomed = true;
    this.#generation = frame.generation;
    this.#marginMs = frame.marginMs;
  }

  #batch(batch: FrameOf<"feedBatch">): void {
    const wasReady = this.#view.ready;
    const applied = this.#view.apply(batch);
    if (applied === undefined) {
      this.#breakSession("a batch does not follow the one applied (P2)");
      return;
    }
    if (batch.snapshot && !batch.complete) return;
    // P1, P3: what is open to an incarnation that is gone goes before the acknowledgement.
    if (batch.snapshot) this.#cutUnknownServers();
    for (const { service, incarnation } of applied.ended) this.#ended(service, incarnation);
    for (const { service, entry } of applied.moved) {
      if (!service.facts.guarded) this.#moved(entry);
    }
    this.#send({ case: "dropped", value: { revision: this.#view.revision } });
    for (const { service, key } of applied.settled) this.#unpark(service, key);
    if (!wasReady || this.#nextRenewal === Number.POSITIVE_INFINITY) this.#renew();
    this.#askAll();
  }

  /** P2: what is known cannot be trusted to be complete; the next session begins with a snapshot. */
  #breakSession(reason: string): void {
    // The generation is still said: revision 0 of it asks for a snapshot.
    this.#view.forget();
    this.#welcomed = false;
    this.#nextRenewal = Number.POSITIVE_INFINITY;
    this.#effects.push({ type: "close", reason });
  }

  #moved(entry: Applied["moved"][number]["entry"]): void {
    const { service, key, epoch, incarnation } = entry;
    const until = this.#now() + entry.drainMs;
    this.#streams.owe({ service, key, epoch, incarnation, until });
    const sockets = this.#streams
      .pickedOn({ service, key, epoch })
      .filter((id) => this.#streams.get(id)?.request.kind === "socket");
    if (sockets.length > 0) this.#effects.push({ type: "close-sockets", ids: sockets });
  }

  #ended(service: ServiceView, incarnation: bigint): void {
    if (service.facts.guarded) return;
    this.#reset((stream) => stream.incarnation === incarnation);
    const { name } = service.facts;
    this.#send({ case: "quiet", value: { service: name, incarnation, key: "", epoch: 0n } });
  }

  #cutUnknownServers(): void {
    this.#reset(({ request, incarnation }) => {
      const service = this.#view.services.get(request.service);
      return service?.facts.guarded !== true && service?.servers.has(incarnation) !== true;
    });
  }

  #reset(isLost: (stream: NonNullable<ReturnType<Streams["get"]>>) => boolean): void {
    const ids = Array.from(this.#streams.all())
      .filter((stream) => isLost(stream))
      .map(({ request }) => request.id);
    this.#close(ids);
  }

  #close(ids: readonly StreamId[]): void {
    if (ids.length === 0) return;
    for (const id of ids) {
      this.#streams.close(id);
      this.#tries.delete(id);
    }
    this.#effects.push({ type: "reset", ids });
  }

  /** P1: at the end of the lease every stream to unguarded servers is reset. */
  #cutOverdue(): void {
    this.#reset(({ request }) => {
      const service = this.#view.services.get(request.service);
      return service?.facts.guarded === false && !this.#believes(service);
    });
  }

  /** P3 */
  #sayQuiet(): void {
    for (const { service, key, epoch, incarnation } of this.#streams.takeQuiet()) {
      this.#send({ case: "quiet", value: { service, key, epoch, incarnation } });
    }
  }

  #renew(): void {
    const leases = Array.from(this.#view.services.values(), ({ facts }) => facts.feedLeaseMs);
    const everyMs = Math.min(RENEW_MS_MAX, ...leases.map((feedLeaseMs) => feedLeaseMs / 3));
    this.#nonce += 1;
    this.#renewals.set(this.#nonce, this.#now());
    this.#nextRenewal = this.#now() + everyMs;
    const { revision: dropped } = this.#view;
    this.#send({ case: "renewFeedLease", value: { nonce: this.#nonce, dropped } });
  }

  #leased({ nonce, revision }: FrameOf<"feedLease">): void {
    const sentAt = this.#renewals.get(nonce);
    if (sentAt === undefined) return;
    for (const older of Array.from(this.#renewals.keys())) {
      if (older <= nonce) this.#renewals.delete(older);
    }
    // P1: it counts only when all entries up to it are applied; on one stream they are.
    if (revision > this.#view.revision) this.#breakSession("a lease overtook its entries (P1)");
    else this.#renewedAt = Math.max(this.#renewedAt, sentAt);
    this.#askAll();
    for (const { service, key } of Array.from(this.#parking.questions())) {
      if (this.answerFor(service, key) !== undefined) this.#unpark(service, key);
    }
  }

  #parkUntil({ service }: ProxyRequest): number {
    return this.#now() + (this.#view.services.get(service)?.facts.parkMs ?? PARK_MS_DEFAULT);
  }

  /** Routes it, or parks it for an answer. The answer is read at the pick (P1). */
  #admit(parked: Parked): void {
    const { request } = parked;
    const answer = this.answerFor(request.service, request.key);
    if (answer === undefined) {
      this.#park(parked, 0n);
      return;
    }
    const server = this.#view.services.get(request.service)?.servers.get(answer.incarnation);
    this.#streams.open({ request, ...answer });
    this.#tries.set(request.id, parked);
    this.#effects.push({
      type: "route",
      id: request.id,
      address: server?.address ?? "",
      incarnation: answer.incarnation,
      epoch: answer.epoch,
    });
  }

  #park(parked: Parked, minRevision: bigint): void {
    if (this.#parking.size >= this.#limits.parked) {
      this.#fail(parked.request.id, "park-full");
      return;
    }
    this.#ask(this.#parking.park(parked, minRevision));
  }

  #unpark(service: string, key: string): void {
    for (const parked of this.#parking.take(service, key)) this.#admit(parked);
  }

  #askAll(): void {
    for (const question of this.#parking.questions()) this.#ask(question);
  }

  #ask(question: Question): void {
    const { service, key, minRevision } = question;
    const view = this.#view.services.get(service);
    const isHeld = view?.moving.has(key) === true || question.requestId !== 0;
    if (isHeld || !this.#welcomed || !this.#view.ready || question.askAt > this.#now()) return;
    this.#requestId += 1;
    question.requestId = this.#requestId;
    this.#send({
      case: "resolve",
      value: { requestId: this.#requestId, service, key, minRevision },
    });
  }

  #resolved(frame: FrameOf<"resolved">): void {
    if (frame.revision < this.#view.revision) {
      this.#breakSession("an answer is older than what is applied (P2)");
      return;
    }
    const question = this.#parking.byRequestId(frame.requestId);
    const { service, key } = frame;
    if (question !== undefined) question.requestId = 0;
    if (frame.outcome === ResolveOutcome.OWNER) {
      if (this.#view.learn(service, key, frame)) this.#trimAnswers(service);
      this.#unpark(service, key);
    } else if (frame.outcome === ResolveOutcome.MOVING) {
      this.#view.services.get(service)?.moving.add(key);
    } else if (frame.outcome === ResolveOutcome.NOT_YET) {
      if (question !== undefined) question.askAt = this.#now() + frame.retryAfterMs;
    } else {
      const name = String(frame.outcome);
      for (const { request } of this.#parking.take(service, key)) this.#fail(request.id, name);
    }
  }

  #trimAnswers(serviceName: string): void {
    const answers = this.#view.services.get(serviceName)?.answers;
    const oldest = answers?.keys().next().value;
    if (answers !== undefined && oldest !== undefined && answers.size > this.#limits.answers) {
      answers.delete(oldest);
    }
  }

  /** R1, R2 */
  #refused(id: StreamId, incarnation: bigint, asOf: bigint): void {
    const stream = this.#streams.close(id);
    const parked = this.#tries.get(id);
    this.#tries.delete(id);
    if (stream === undefined || parked === undefined) return;
    if (incarnation !== stream.incarnation) {
      this.#fail(id, "a refusal of another incarnation");
      return;
    }
    if (parked.tries + 1 >= TRIES_MAX) {
      this.#fail(id, "refused");
      return;
    }
    const again: Parked = { ...parked, tries: parked.tries + 1 };
    const { service, key } = stream.request;
    const answers = this.#view.services.get(service)?.answers;
    if (asOf >= stream.epoch) {
      if (answers?.get(key)?.epoch === stream.epoch) answers.delete(key);
      if (answers?.has(key) === true) this.#admit(again);
      else this.#park(again, asOf);
      return;
    }
    // It knows less than this proxy: asked anew a little later.
    this.#parking.park(again, 0n).askAt = this.#now() + CATCH_UP_MS;
  }

  #tick(): void {
    const now = this.#now();
    if (this.#welcomed && this.#view.ready && this.#nextRenewal <= now) this.#renew();
    for (const owed of Array.from(this.#streams.owed())) {
      // P3: at the drain deadline the proxy resets them and says so.
      if (owed.until <= now) this.#close(this.#streams.pickedOn(owed));
    }
    for (const { request } of this.#parking.expired(now)) this.#fail(request.id, "parked too long");
    this.#askAll();
  }
}
