import {
  type Batch,
  type CommitOutcome,
  type Coordinator,
  createCoordinator,
  type Effect,
  MemoryStore,
} from "@belay/ownership";
import type { FrameBody, FrameBodyInit } from "@belay/protocol";
import type { Connection, ConnectionEnd, Environment } from "./environment.ts";
import { Node } from "./node.ts";

/** Commits that a store which loses its tail forgets. */
const TAIL = 4;
const UNIX_S = 1_700_000_000;
const quiet = (): void => undefined;

/** The coordinator's process and its store, which outlives it. */
export class CoordinatorNode extends Node implements ConnectionEnd {
  store: MemoryStore;
  #history: MemoryStore[] = [];
  #machine: Coordinator | undefined;
  readonly #links = new Map<number, { readonly link: Connection; readonly peer: string }>();

  constructor(world: Environment) {
    super(world, "coordinator");
    this.store = new MemoryStore(world.random);
    this.#start();
  }

  get machine(): Coordinator | undefined {
    return this.#machine;
  }

  /** A peer has connected. */
  accepted(link: Connection, peer: string): void {
    this.#links.set(link.id, { link, peer });
    this.run(() => this.#machine?.handle({ type: "connected", peer: link.id }));
  }

  received(link: Connection, frame: FrameBody): void {
    const peer = this.#links.get(link.id)?.peer ?? "";
    const frames = this.world.plant.up?.({ link: link.id, peer }, frame) ?? [frame];
    for (const each of frames) {
      this.#machine?.handle({ type: "frame", peer: link.id, frame: each });
    }
  }

  closed(link: Connection): void {
    this.#links.delete(link.id);
    this.#machine?.handle({ type: "disconnected", peer: link.id });
  }

  protected settle(): void {
    const effects = this.#machine?.take() ?? [];
    for (const effect of effects) this.#carryOut(effect);
    if (effects.length > 0) this.settle();
  }

  protected wakeAt(): number {
    return this.#machine?.wakeAt() ?? Number.POSITIVE_INFINITY;
  }

  protected tick(): void {
    this.#machine?.handle({ type: "tick" });
  }

  protected started(): void {
    this.#start();
  }

  protected stopped(): void {
    this.#machine = undefined;
    for (const { link } of this.#links.values()) link.abandon("up");
    this.#links.clear();
    if (this.world.plant.losesTail === true) this.#loseTail();
  }

  #start(): void {
    const { options, plant, timeline, random } = this.world;
    const seconds = plant.losesTail === true ? 0 : UNIX_S + timeline.now / 1000;
    const meta = this.store.takeOverNow(seconds);
    const rows = this.store.rows();
    this.#machine = createCoordinator(
      {
        clock: this,
        random,
        logger: { debug: quiet, info: quiet, warn: quiet, error: quiet },
        marginMs: options.marginMs,
        rateError: options.rateError,
        storeName: "memory",
        storeExclusive: true,
      },
      { meta, rows: plant.loaded?.(rows) ?? rows },
    );
  }

  #loseTail(): void {
    const kept = this.#history[0];
    this.#history = [];
    if (kept === undefined) return;
    // A term is never lost: it is committed before anything is given away under it (T1).
    this.store = kept;
    this.world.note("the store loses its tail");
  }

  #carryOut(effect: Effect): void {
    switch (effect.type) {
      case "send":
        this.#send(effect.peer, effect.frame);
        break;
      case "broadcast":
        for (const peer of effect.peers) this.#send(peer, effect.frame);
        break;
      case "close":
        this.#links.get(effect.peer)?.link.close();
        break;
      case "commit":
        this.#commit(effect.batch);
        break;
      case "exit":
        this.world.note(`coordinator exits: ${effect.code}`);
        this.crash();
        this.world.restartLater(this);
        break;
    }
  }

  #send(id: number, frame: FrameBodyInit): void {
    const connected = this.#links.get(id);
    if (connected === undefined) return;
    const { link, peer } = connected;
    const frames = this.world.plant.down?.({ link: id, peer }, frame) ?? [frame];
    for (const each of frames) {
      if (each.case === "grant") this.world.granted(each.value.shards ?? []);
      link.send("down", each);
    }
  }

  #commit(batch: Batch): void {
    const { random, timeline, plant } = this.world;
    const life = this.life;
    const answer = (outcome: CommitOutcome): void => {
      if (life === this.life) this.run(() => this.#machine?.handle({ type: "committed", outcome }));
    };
    if (plant.believesEarly === true) {
      answer({ outcome: "committed" });
      timeline.plan(timeline.now + random.between(5, 60), () => {
        if (life === this.life) this.#write(batch);
      });
      return;
    }
    const fate = random.next();
    timeline.plan(timeline.now + random.between(0.1, random.chance(0.1) ? 80 : 4), () => {
      // The process that asked may be gone: the store writes or not, as it comes.
      if (life !== this.life && random.chance(0.5)) return;
      if (fate < 0.01) return answer({ outcome: "failed", message: "the disk is full" });
      const outcome = fate < 0.02 ? undefined : this.#write(batch);
      // T3: nobody knows whether it was written.
      const isLost = fate >= 0.02 && fate < 0.03;
      return answer(outcome === undefined || isLost ? UNKNOWN : outcome);
    });
  }

  #write(batch: Batch): CommitOutcome {
    const before = this.store.meta.revision;
    if (this.world.plant.losesTail === true) {
      this.#history.push(this.store.copy());
      if (this.#history.length > TAIL) this.#history.shift();
    }
    const outcome = this.store.commitNow(batch);
    if (this.store.meta.revision !== before) this.world.committed(batch);
    return outcome;
  }
}

const UNKNOWN: CommitOutcome = { outcome: "unknown", message: "the store did not answer" };
