import type { Clock } from "@belay/model";
import type { Environment } from "./environment.ts";

/** A process: it has a clock of its own rate, can be paused and can crash. */
export abstract class Node implements Clock {
  readonly name: string;
  protected readonly world: Environment;
  readonly #rate: number;
  readonly #offset: number;
  #pausedUntil = 0;
  /** Rises at each crash: what was planned for an earlier life does not run. */
  #life = 1;
  #alive = true;
  #mailbox: (() => void)[] = [];
  #wakePlanned = Number.POSITIVE_INFINITY;

  constructor(world: Environment, name: string) {
    this.world = world;
    this.name = name;
    const { rateError } = world.options;
    this.#rate = 1 + world.random.between(-rateError, rateError);
    this.#offset = world.random.between(0, 1e9);
  }

  /** By its own clock. */
  now(): number {
    return this.#offset + this.world.timeline.now * this.#rate;
  }

  get life(): number {
    return this.#life;
  }

  get alive(): boolean {
    return this.#alive;
  }

  get paused(): boolean {
    return this.world.timeline.now < this.#pausedUntil;
  }

  /** Does `act` in this process, now or when it is no longer paused; never, if it has crashed since. */
  run(act: () => void): void {
    if (!this.#alive) return;
    if (this.paused) {
      this.#mailbox.push(act);
      return;
    }
    act();
    this.settle();
    this.#planWake();
    this.world.afterStep();
  }

  /** `run`, later by its own clock. */
  runAfter(delayMs: number, act: () => void): void {
    const life = this.#life;
    this.world.timeline.plan(this.world.timeline.now + delayMs / this.#rate, () => {
      if (life === this.#life) this.run(act);
    });
  }

  pause(durationMs: number): void {
    if (!this.#alive || this.paused) return;
    const { timeline } = this.world;
    this.world.note(`${this.name} pauses for ${Math.round(durationMs)} ms`);
    this.#pausedUntil = timeline.now + durationMs;
    const life = this.#life;
    timeline.plan(this.#pausedUntil, () => {
      if (life !== this.#life) return;
      const mailbox = this.#mailbox;
      this.#mailbox = [];
      // The clock ran on: a tick comes first, as a timer that is overdue does.
      this.run(() => this.tick());
      for (const act of mailbox) this.run(act);
    });
  }

  crash(): void {
    if (!this.#alive) return;
    this.world.note(`${this.name} crashes`);
    this.#alive = false;
    this.#life += 1;
    this.#pausedUntil = 0;
    this.#mailbox = [];
    this.#wakePlanned = Number.POSITIVE_INFINITY;
    this.stopped();
  }

  restart(): void {
    if (this.#alive) return;
    this.world.note(`${this.name} starts`);
    this.#alive = true;
    this.run(() => this.started());
  }

  /** Carries out what the machine has to say. */
  protected abstract settle(): void;
  protected abstract wakeAt(): number;
  protected abstract tick(): void;
  protected abstract started(): void;
  protected abstract stopped(): void;

  #planWake(): void {
    const wakeAt = this.wakeAt();
    if (wakeAt === Number.POSITIVE_INFINITY) return;
    const at = (wakeAt - this.#offset) / this.#rate;
    // An earlier wake-up is planned already: it plans the next one.
    if (this.#wakePlanned <= at && this.#wakePlanned >= this.world.timeline.now) return;
    this.#wakePlanned = at;
    const life = this.#life;
    // A timer is never early, and rounding must not make one fire for ever.
    this.world.timeline.plan(Math.max(at, this.world.timeline.now) + 0.01, () => {
      if (life !== this.#life) return;
      if (this.#wakePlanned === at) this.#wakePlanned = Number.POSITIVE_INFINITY;
      this.run(() => this.tick());
    });
  }
}
