import { type FilledEdge, startFilledEdge } from "../edge/filled-edge.ts";
import { pinLoad } from "../machine/process-facts.ts";
import type { Tools } from "../machine/tools.ts";
import type { BenchOptions } from "../options.ts";
import { Rivals } from "../rivals/rivals.ts";

/** What the cases share: B1, B2 and B3 run on one filled edge beside one set of rivals. */
export class CaseContext {
  readonly tools: Tools;
  readonly options: BenchOptions;
  readonly say: (text: string) => void;
  #filled: FilledEdge | undefined;
  #rivals: Rivals | undefined;

  constructor(tools: Tools, options: BenchOptions, say: (text: string) => void) {
    this.tools = tools;
    this.options = options;
    this.say = say;
  }

  async filledEdge(): Promise<FilledEdge> {
    if (this.#filled !== undefined) return this.#filled;
    pinLoad("off the proxy's core");
    const { keys } = this.options;
    this.say(`filling the edge with ${keys} keys`);
    this.#filled = await startFilledEdge(this.tools, keys);
    this.say(`filled in ${this.#filled.seconds.toFixed(0)} s`);
    return this.#filled;
  }

  async rivals(): Promise<Rivals> {
    if (this.#rivals !== undefined) return this.#rivals;
    pinLoad("off the proxy's core");
    this.say("starting the rivals");
    const { only, keys } = this.options;
    const which = only.includes("B1") ? "all" : "plain and empty";
    this.#rivals = await Rivals.start({ tools: this.tools, keys, which });
    return this.#rivals;
  }

  /** Ends what the pinned cases share; what comes after them has the whole machine. */
  async release(): Promise<void> {
    await Promise.all([this.#filled?.edge.stop(), this.#rivals?.stop()]);
    this.#filled = undefined;
    this.#rivals = undefined;
    pinLoad("anywhere");
  }
}
