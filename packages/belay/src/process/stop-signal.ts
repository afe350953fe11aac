/** Two signals closer than this are one: Ctrl-C reaches a whole process group, and launchers hand it on. */
const SAME_SIGNAL_MS = 700;

const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Set by `belay up`: its children also stop when their standard input ends, as when `up` was killed. */
export const STOP_ON_STDIN_END = "BELAY_STOP_ON_STDIN_END";

/** Waits for the wish to stop. */
export class StopSignal {
  /** Settles at the first SIGINT, SIGTERM or SIGHUP, or with `trigger`. */
  readonly stopped: Promise<string>;
  #resolve: (why: string) => void;
  #firstMs: number | undefined;
  readonly #onForce: () => void;

  /** `onForce` is called if somebody asks again, later: stop now. */
  constructor(onForce: () => void) {
    this.#onForce = onForce;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.stopped = promise;
    this.#resolve = resolve;
    for (const signal of STOP_SIGNALS) process.on(signal, () => this.trigger(signal));
    if (process.env[STOP_ON_STDIN_END] === "1") {
      process.stdin.on("error", () => this.trigger("end of input"));
      process.stdin.on("end", () => this.trigger("end of input")).resume();
    }
  }

  get wanted(): boolean {
    return this.#firstMs !== undefined;
  }

  trigger(why: string): void {
    const nowMs = performance.now();
    if (this.#firstMs === undefined) {
      this.#firstMs = nowMs;
      this.#resolve(why);
    } else if (nowMs - this.#firstMs > SAME_SIGNAL_MS && why !== "end of input") {
      this.#onForce();
    }
  }
}
