import {
  createServerSession,
  HeldLease,
  Ledger,
  type Refusal,
  type ServerSession,
  type ServerSessionEffect,
} from "@belay/ownership";
import { type FrameBody, type FrameBodyInit, Role } from "@belay/protocol";
import type { Connection, ConnectionEnd, Environment } from "./environment.ts";
import { Node } from "./node.ts";
import type { Arrival, Outcome } from "./traffic.ts";

/** A stateful server with its session. */
export class ServerNode extends Node implements ConnectionEnd {
  readonly address: string;
  session: ServerSession;
  lease: HeldLease;
  ledger: Ledger;
  #link: Connection | undefined;
  readonly #arrivals = new Map<number, Arrival>();
  #generation: Uint8Array = new Uint8Array(0);
  #freezeMs = 0;
  /** T4: said in every Hello. */
  #revision = 0n;

  constructor(world: Environment, index: number) {
    super(world, `server-${index}`);
    this.address = `10.0.0.${index + 1}:8000`;
    this.lease = new HeldLease();
    this.ledger = new Ledger();
    this.session = this.#create();
  }

  /** I1: it would let a request for `key` in, or do so as soon as it runs again. */
  wouldAdmit(key: string): boolean {
    const held = this.ledger.held(key);
    const isActive = held !== undefined && held.drainUntil === undefined;
    return this.alive && isActive && this.lease.lives(this.now());
  }

  received(_link: Connection, frame: FrameBody): void {
    if ("asOf" in frame.value) this.#saw(frame.value.asOf);
    if (frame.case !== "welcome") {
      this.session.handle({ type: "frame", frame });
      return;
    }
    // G2: never with a coordinator of a lower term than seen. Another generation is another history.
    this.#generation = frame.value.generation;
    this.#saw(frame.value.revision);
    this.session.handle({ type: "connected" });
  }

  closed(link: Connection): void {
    if (link !== this.#link) return;
    this.#link = undefined;
    this.session.handle({ type: "disconnected" });
    this.#connectLater();
  }

  /** A proxy sends a request here. */
  arrive(arrival: Arrival): void {
    if (!this.alive) {
      arrival.reply({ type: "lost" });
      return;
    }
    this.run(() => {
      this.#arrivals.set(arrival.attempt, arrival);
      if (!this.world.options.guarded) {
        this.#begin(arrival, arrival.epoch);
        return;
      }
      const { attempt: id, kind, incarnation, key, epoch } = arrival;
      const decision = this.session.admit({ id, kind, incarnation, key, epoch });
      if (decision.type === "admit") this.#begin(arrival, decision.epoch);
      if (decision.type === "refuse") this.#refuse(arrival, decision);
    });
  }

  /** The proxy has reset it: the handler of a guarded server stops. */
  abort(attempt: number): void {
    this.run(() => {
      if (this.world.options.guarded) this.#finish(attempt, { type: "lost" });
    });
  }

  /** Stops for that long as soon as it has sent its next renewal. */
  freezeAtRenewal(durationMs: number): void {
    this.#freezeMs = durationMs;
  }

  drain(): void {
    this.run(() => this.session.handle({ type: "drain" }));
  }

  protected settle(): void {
    const effects = this.session.take();
    for (const effect of effects) this.#carryOut(effect);
    if (effects.length > 0) this.settle();
  }

  protected wakeAt(): number {
    return this.session.wakeAt();
  }

  protected tick(): void {
    this.session.handle({ type: "tick" });
  }

  protected started(): void {
    this.session = this.#create();
    this.#generation = new Uint8Array(0);
    this.#revision = 0n;
    this.#connectLater();
  }

  protected stopped(): void {
    this.#link?.abandon("down");
    this.#link = undefined;
    for (const arrival of this.#arrivals.values()) arrival.reply({ type: "lost" });
    this.#arrivals.clear();
  }

  #create(): ServerSession {
    const planted = this.world.plant.serverParts?.(this);
    this.lease = planted?.lease ?? new HeldLease();
    this.ledger = planted?.ledger ?? new Ledger();
    return createServerSession(
      {
        clock: this,
        service: "world",
        serverId: this.name,
        address: this.address,
        zone: "",
        guarded: this.world.options.guarded,
        capacity: 0,
        newSecret: () => this.world.random.bytes(16),
      },
      { lease: this.lease, ledger: this.ledger },
    );
  }

  #connectLater(): void {
    this.runAfter(this.world.random.between(5, 60), () => {
      if (this.#link !== undefined) return;
      this.#link = this.world.connect(this, this.name);
      if (this.#link === undefined) this.#connectLater();
      else this.#hello();
    });
  }

  #hello(): void {
    this.#link?.send("up", {
      case: "hello",
      value: {
        protocolVersion: 1,
        role: Role.SERVER,
        name: this.name,
        generation: this.#generation,
        revision: this.#revision,
      },
    });
  }

  #saw(revision: bigint): void {
    if (revision > this.#revision) this.#revision = revision;
  }

  /** To be called once the world is complete. */
  begin(): void {
    this.#connectLater();
  }

  #begin(arrival: Arrival, epoch: bigint): void {
    this.world.handlerBegan(arrival);
    this.runAfter(arrival.durationMs, () => {
      if (!this.#arrivals.has(arrival.attempt)) return;
      // G6: before the first byte of the answer.
      const mayAnswer = !this.world.options.guarded || this.session.mayAnswer(arrival.attempt);
      this.#finish(arrival.attempt, mayAnswer ? { type: "answer", epoch } : { type: "lost" });
    });
  }

  #refuse(arrival: Arrival, refusal: Refusal): void {
    this.#arrivals.delete(arrival.attempt);
    this.world.handlerRefused(arrival);
    arrival.reply({ type: "refused", refusal });
  }

  #finish(attempt: number, outcome: Outcome): void {
    const arrival = this.#arrivals.get(attempt);
    if (arrival === undefined) return;
    this.#arrivals.delete(attempt);
    this.session.end(attempt);
    if (outcome.type === "answer") this.world.handlerAnswered(arrival, outcome.epoch);
    arrival.reply(outcome);
  }

  #carryOut(effect: ServerSessionEffect): void {
    if (effect.type === "send") this.#send(effect.frame);
    else if (effect.type === "decided") this.#decided(effect.id, effect.decision);
    else if (effect.type === "reset") this.#reset(effect.requests);
    else if (effect.type === "close-sockets") this.runAfter(1, () => this.#reset(effect.requests));
    else if (effect.type === "drained") this.world.drained(this);
  }

  #send(frame: FrameBodyInit): void {
    if (frame.case === "release") this.#note(frame.value);
    this.#link?.send("up", frame);
    if (frame.case !== "renewServerLease" || this.#freezeMs === 0) return;
    // Right behind the renewal: its answer will lie there until the process wakes up.
    this.pause(this.#freezeMs);
    this.#freezeMs = 0;
  }

  #reset(attempts: readonly number[]): void {
    for (const attempt of attempts) this.#finish(attempt, { type: "lost" });
  }

  #note(release: {
    incarnation?: bigint;
    shards?: readonly { key?: string; epoch?: bigint }[];
  }): void {
    for (const { key = "", epoch = 0n } of release.shards ?? []) {
      this.world.released({ incarnation: release.incarnation ?? 0n, key, epoch });
    }
  }

  #decided(
    id: number,
    decision: Extract<ServerSessionEffect, { type: "decided" }>["decision"],
  ): void {
    const arrival = this.#arrivals.get(id);
    if (arrival === undefined) {
      // The proxy gave up while the coordinator was asked.
      this.session.end(id);
    } else if (decision.type === "admit") this.#begin(arrival, decision.epoch);
    else this.#refuse(arrival, decision);
  }
}
