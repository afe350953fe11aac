import type { SocketAddress } from "../machine/socket-address.ts";
import { probeHealth } from "./health-probe.ts";
import type { HealthCheck } from "./run-settings.ts";

const EVERY_MS = 1000;
const TIMEOUT_MS = 2000;
const FAILURES_MAX = 3;

/** Checks a server once a second from when it was first well; unwell after three failures in a row. */
export class HealthWatch {
  #failures = 0;
  #busy = false;
  readonly #timer: NodeJS.Timeout;

  constructor(check: HealthCheck, at: SocketAddress) {
    this.#timer = setInterval(() => {
      if (this.#busy) return;
      this.#busy = true;
      void probeHealth(check, at, TIMEOUT_MS).then((well) => {
        this.#busy = false;
        this.#failures = well ? 0 : this.#failures + 1;
      });
    }, EVERY_MS);
  }

  get healthy(): boolean {
    return this.#failures < FAILURES_MAX;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
