import { createProxyModel, type ProxyModel, type ProxyModelEffect } from "@belay/ownership";
import type { FrameBody } from "@belay/protocol";
import type { Connection, ConnectionEnd, Environment } from "./environment.ts";
import { Node } from "./node.ts";
import type { ClientRequest, OpenAttempt, Outcome } from "./traffic.ts";

/** A proxy's process. */
export class ProxyNode extends Node implements ConnectionEnd {
  machine: ProxyModel;
  #link: Connection | undefined;
  readonly #clients = new Map<number, ClientRequest>();
  readonly #attempts = new Map<number, OpenAttempt>();

  constructor(world: Environment, index: number) {
    super(world, `proxy-${index}`);
    this.machine = this.#create();
  }

  /** Streams that are open to servers now. */
  attempts(): Iterable<OpenAttempt> {
    return this.#attempts.values();
  }

  received(_link: Connection, frame: FrameBody): void {
    this.machine.handle({ type: "frame", frame });
  }

  closed(link: Connection): void {
    if (link !== this.#link) return;
    this.#link = undefined;
    this.machine.handle({ type: "disconnected" });
    this.#connectLater();
  }

  request(request: ClientRequest): void {
    this.run(() => {
      this.#clients.set(request.id, request);
      const { id, key, kind } = request;
      this.machine.handle({ type: "request", request: { id, service: "world", key, kind } });
    });
  }

  protected settle(): void {
    const effects = this.machine.take();
    for (const effect of effects) this.#carryOut(effect);
    if (effects.length > 0) this.settle();
  }

  protected wakeAt(): number {
    return this.machine.wakeAt();
  }

  protected tick(): void {
    this.machine.handle({ type: "tick" });
  }

  protected started(): void {
    this.machine = this.#create();
    this.#connectLater();
  }

  protected stopped(): void {
    this.#link?.abandon("down");
    this.#link = undefined;
    for (const attempt of this.#attempts.values()) this.world.abort(attempt);
    this.#attempts.clear();
    this.#clients.clear();
  }

  #create(): ProxyModel {
    return createProxyModel({
      clock: this,
      name: this.name,
      processId: this.world.random.bytes(16),
    });
  }

  /** To be called once the world is complete. */
  begin(): void {
    this.#connectLater();
  }

  #connectLater(): void {
    this.runAfter(this.world.random.between(5, 60), () => {
      if (this.#link !== undefined) return;
      this.#link = this.world.connect(this, this.name);
      if (this.#link === undefined) this.#connectLater();
      else this.machine.handle({ type: "connected" });
    });
  }

  #carryOut(effect: ProxyModelEffect): void {
    switch (effect.type) {
      case "send":
        this.#link?.send("up", effect.frame);
        break;
      case "route":
        this.#route(effect);
        break;
      case "fail":
        this.#attempts.delete(effect.id);
        this.#clients.delete(effect.id);
        break;
      case "reset":
        for (const id of effect.ids) this.#reset(id);
        break;
      case "close-sockets":
        for (const id of effect.ids) this.runAfter(1, () => this.#closeSocket(id));
        break;
      case "close":
        this.#link?.close();
        break;
    }
  }

  #route(effect: Extract<ProxyModelEffect, { type: "route" }>): void {
    const request = this.#clients.get(effect.id);
    if (request === undefined) return;
    const { address, incarnation, epoch } = effect;
    const attempt = this.world.nextAttempt();
    const open: OpenAttempt = { request, attempt, address, incarnation, epoch };
    this.#attempts.set(request.id, open);
    this.world.dial(open, (outcome) => this.run(() => this.#answered(open, outcome)));
  }

  #answered(open: OpenAttempt, outcome: Outcome): void {
    const { id } = open.request;
    if (this.#attempts.get(id)?.attempt !== open.attempt) return;
    this.#attempts.delete(id);
    if (outcome.type === "refused") {
      const { incarnation, asOf } = outcome.refusal;
      this.machine.handle({ type: "refused", id, incarnation, asOf });
      return;
    }
    this.#clients.delete(id);
    this.machine.handle({ type: "ended", id });
    if (outcome.type === "answer") this.world.served(open.request);
  }

  #reset(id: number): void {
    const open = this.#attempts.get(id);
    this.#attempts.delete(id);
    this.#clients.delete(id);
    if (open !== undefined) this.world.abort(open);
  }

  #closeSocket(id: number): void {
    if (!this.#attempts.has(id)) return;
    this.#reset(id);
    this.machine.handle({ type: "ended", id });
  }
}
