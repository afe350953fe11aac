import type { Writable } from "node:stream";

/** The first thing that kept a stream from taking what was written to it; console.log hides it. */
export class OutputWatch {
  readonly #stream: Writable;
  #loss: Error | undefined;

  constructor(stream: Writable) {
    this.#stream = stream;
    stream.on("error", (error: Error) => (this.#loss ??= error));
  }

  /** Settles once all that was written is out, or lost; answers why. */
  async settle(): Promise<Error | undefined> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#stream.write("", () => resolve());
    await promise;
    return this.#loss;
  }
}
