import type { Batch } from "@belay/ownership";
import { Checks, Violation } from "./checks.ts";
import { ControlPlaneNode } from "./control-plane-node.ts";
import { CoordinatorNode } from "./coordinator-node.ts";
import type { ConnectionEnd, Environment, Restartable } from "./environment.ts";
import { Link } from "./link.ts";
import type { WorldOptions } from "./options.ts";
import type { Plant } from "./plant.ts";
import { ProxyNode } from "./proxy-node.ts";
import { SeededRandom } from "./seeded-random.ts";
import { ServerNode } from "./server-node.ts";
import { Timeline } from "./timeline.ts";
import type { Arrival, ClientRequest, OpenAttempt, Outcome } from "./traffic.ts";

const NOTES_MAX = 200;
const RESTART_MS_MAX = 800;

/** Everything there is: processes, what connects them, and who watches. */
export class World implements Environment {
  readonly options: WorldOptions;
  readonly plant: Plant;
  readonly random: SeededRandom;
  readonly timeline = new Timeline();
  readonly checks: Checks;
  readonly keys: readonly string[];
  readonly coordinator: CoordinatorNode;
  readonly controlPlane: ControlPlaneNode;
  readonly servers: readonly ServerNode[];
  readonly proxies: readonly ProxyNode[];
  readonly links = new Set<Link>();
  /** What happened, the last of it, for whoever reads a violation. */
  readonly notes: string[] = [];
  /** Time of the last answer, by key. */
  readonly servedAt = new Map<string, number>();
  steps = 0;
  answers = 0;
  moves = 0;
  #links = 0;
  #attempts = 0;
  #requests = 0;

  constructor(options: WorldOptions, plant: Plant = {}) {
    this.options = options;
    this.plant = plant;
    this.random = new SeededRandom(options.seed);
    this.checks = new Checks(this);
    this.keys = Array.from({ length: options.keys }, (_, index) => `key-${index}`);
    this.coordinator = new CoordinatorNode(this);
    this.controlPlane = new ControlPlaneNode(this);
    this.servers = Array.from({ length: options.servers }, (_, i) => new ServerNode(this, i));
    this.proxies = Array.from({ length: options.proxies }, (_, i) => new ProxyNode(this, i));
    this.controlPlane.begin();
    for (const node of [...this.servers, ...this.proxies]) node.begin();
  }

  note(text: string): void {
    this.notes.push(`${this.timeline.now.toFixed(1)} ${text}`);
    if (this.notes.length > NOTES_MAX) this.notes.shift();
  }

  afterStep(): void {
    this.steps += 1;
    this.checks.step();
  }

  committed(batch: Batch): void {
    this.plant.committed?.(batch);
    this.checks.committed(batch);
  }

  /** Undefined: the coordinator does not listen. */
  connect(end: ConnectionEnd, name: string): Link | undefined {
    if (!this.coordinator.alive) return undefined;
    const link = new Link(this, (this.#links += 1), { up: this.coordinator, down: end });
    for (const known of this.links) if (!known.isOpen) this.links.delete(known);
    this.links.add(link);
    this.coordinator.accepted(link, name);
    return link;
  }

  restartLater(node: Restartable): void {
    const at = this.timeline.now + this.random.between(10, RESTART_MS_MAX);
    this.timeline.plan(at, () => node.restart());
  }

  nextAttempt(): number {
    return (this.#attempts += 1);
  }

  /** Carries an attempt to the process at its address, and its outcome back. */
  dial(open: OpenAttempt, answered: (outcome: Outcome) => void): void {
    const { request, attempt, address, incarnation, epoch } = open;
    const back = (outcome: Outcome): void => this.#travel(() => answered(outcome));
    const arrival: Arrival = {
      attempt,
      request: request.id,
      key: request.key,
      kind: request.kind,
      durationMs: request.durationMs,
      incarnation,
      epoch,
      reply: back,
    };
    const server = this.servers.find((candidate) => candidate.address === address);
    this.#travel(() => {
      if (server === undefined) back({ type: "lost" });
      else server.arrive(arrival);
    });
  }

  abort({ address, attempt }: OpenAttempt): void {
    const server = this.servers.find((candidate) => candidate.address === address);
    this.#travel(() => server?.abort(attempt));
  }

  granted(shards: Parameters<Checks["granted"]>[0]): void {
    this.checks.granted(shards);
  }

  released(shard: Parameters<Checks["released"]>[0]): void {
    this.checks.released(shard);
  }

  handlerBegan(arrival: Arrival): void {
    if (this.options.guarded) this.checks.began(arrival.request, arrival.attempt);
  }

  handlerRefused(arrival: Arrival): void {
    this.checks.refused(arrival.attempt);
  }

  handlerAnswered(arrival: Arrival, epoch: bigint): void {
    if (this.options.guarded) this.checks.answered(arrival.key, epoch);
  }

  served(request: ClientRequest): void {
    this.answers += 1;
    this.servedAt.set(request.key, this.timeline.now);
  }

  drained(server: Parameters<Environment["drained"]>[0]): void {
    this.note(`${server.name} is drained`);
    server.crash();
    this.restartLater(server);
  }

  /** One client's request through any proxy that is alive. */
  request(): void {
    const { random } = this;
    const alive = this.proxies.filter((proxy) => proxy.alive);
    if (alive.length === 0) return;
    const isSocket = random.chance(0.05);
    random.pick(alive).request({
      id: (this.#requests += 1),
      key: random.pick(this.keys),
      kind: isSocket ? "socket" : "request",
      durationMs: isSocket ? random.between(500, 4000) : random.between(1, 150),
    });
  }

  move(): void {
    this.moves += 1;
    const to = this.random.chance(0.5) ? this.random.pick(this.servers).name : "";
    this.controlPlane.move(this.random.pick(this.keys), to);
  }

  /** I11: with everything alive and connected, every key is served again in time. */
  checkServed(since: number): void {
    for (const key of this.keys) {
      if ((this.servedAt.get(key) ?? 0) >= since) continue;
      throw new Violation("I11", `${key} is not served again, last at ${this.servedAt.get(key)}`);
    }
  }

  #travel(act: () => void): void {
    const { random, timeline, options } = this;
    const delayMs = random.chance(0.05)
      ? random.between(0, options.delayMsMax)
      : random.between(0.05, 2);
    timeline.plan(timeline.now + delayMs, act);
  }
}
