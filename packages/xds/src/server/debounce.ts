/** Joins calls that come close together: runs after a pause, at the latest `ceilingMs` after the first. */
export class Debounce {
  readonly #run: () => void;
  readonly #pauseMs: number;
  readonly #ceilingMs: number;
  #pause: NodeJS.Timeout | undefined;
  #ceiling: NodeJS.Timeout | undefined;

  constructor(run: () => void, { pauseMs, ceilingMs }: { pauseMs: number; ceilingMs: number }) {
    this.#run = run;
    this.#pauseMs = pauseMs;
    this.#ceilingMs = ceilingMs;
  }

  call(): void {
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => this.flush(), this.#pauseMs);
    this.#ceiling ??= setTimeout(() => this.flush(), this.#ceilingMs);
  }

  /** Runs now if a call waits. */
  flush(): void {
    if (this.#ceiling === undefined) return;
    this.cancel();
    this.#run();
  }

  cancel(): void {
    clearTimeout(this.#pause);
    clearTimeout(this.#ceiling);
    this.#pause = undefined;
    this.#ceiling = undefined;
  }
}
