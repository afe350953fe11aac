import type { Clock } from "@belay/model";

/** setTimeout's range; a longer wait is cut and asked again. */
const TIMER_MS_MAX = 60_000;

/** Wakes a machine when it wants to be: at its `wakeAt`, on the clock of leases. */
export class WakeTimer {
  readonly #clock: Clock;
  readonly #onWake: () => void;
  #timer: NodeJS.Timeout | undefined;
  #atMs = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, onWake: () => void) {
    this.#clock = clock;
    this.#onWake = onWake;
  }

  /** An earlier timer than needed is harmless; setting it anew at every request is not. */
  wakeAt(atMs: number): void {
    if (atMs >= this.#atMs) return;
    clearTimeout(this.#timer);
    this.#atMs = atMs;
    const waitMs = Math.min(Math.max(atMs - this.#clock.now(), 0), TIMER_MS_MAX);
    this.#timer = setTimeout(() => {
      this.#atMs = Number.POSITIVE_INFINITY;
      this.#onWake();
    }, Math.ceil(waitMs));
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
