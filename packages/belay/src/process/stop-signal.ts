/** Two signals closer than this are one: Ctrl-C reaches a whole process group, and launchers hand it on. */
const SAME_SIGNAL_MS = 700;

const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The wish to stop: SIGINT, SIGTERM or SIGHUP. */
export class StopSignal {
  /** Settles at the first signal, with its name. */
  readonly stopped: Promise<string>;
  /** Settles when somebody asks again, later: stop now. */
  readonly forced: Promise<void>;
  readonly #stop: (why: string) => void;
  readonly #force: () => void;
  #firstMs: number | undefined;

  constructor(signals: readonly NodeJS.Signals[] = STOP_SIGNALS) {
    const stopped = Promise.withResolvers<string>();
    const forced = Promise.withResolvers<void>();
    this.stopped = stopped.promise;
    this.forced = forced.promise;
    this.#stop = stopped.resolve;
    this.#force = forced.resolve;
    for (const signal of signals) process.on(signal, () => this.#take(signal));
  }

  get wanted(): boolean {
    return this.#firstMs !== undefined;
  }

  #take(signal: NodeJS.Signals): void {
    const nowMs = performance.now();
    if (this.#firstMs === undefined) {
      this.#firstMs = nowMs;
      this.#stop(signal);
    } else if (nowMs - this.#firstMs > SAME_SIGNAL_MS) this.#force();
  }
}
