/** What a handler is told about its request. */
export class RequestContext {
  /** The key that this server owns; undefined for a request without one. */
  readonly key: string | undefined;
  /** Write it with whatever leaves this process: a store that refuses lower epochs fences (G5). */
  readonly epoch: bigint;
  #lostController: AbortController | undefined;
  #leavingController: AbortController | undefined;
  #isLost = false;
  #isLeaving = false;

  constructor(key: string | undefined, epoch: bigint) {
    this.key = key;
    this.epoch = epoch;
  }

  /** Aborts when the answer can no longer go out: ownership is lost, or the client is gone. */
  get signal(): AbortSignal {
    if (this.#lostController === undefined) {
      this.#lostController = new AbortController();
      if (this.#isLost) this.#lostController.abort();
    }
    return this.#lostController.signal;
  }

  /** Aborts when the key is about to move: long polls and event streams end now, cleanly. */
  get leaving(): AbortSignal {
    if (this.#leavingController === undefined) {
      this.#leavingController = new AbortController();
      if (this.#isLeaving) this.#leavingController.abort();
    }
    return this.#leavingController.signal;
  }

  /** For adapters. */
  lost(): void {
    this.#isLost = true;
    this.#lostController?.abort();
  }

  /** For adapters. */
  leave(): void {
    this.#isLeaving = true;
    this.#leavingController?.abort();
  }
}
