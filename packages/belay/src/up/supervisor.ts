import { setTimeout as delay } from "node:timers/promises";
import { BelayError } from "@belay/model";
import { ManagedProcess } from "../process/managed-process.ts";
import type { PrintLine } from "./line-printer.ts";
import type { PlannedProcess } from "./plan.ts";

const PROBE_EVERY_MS = 100;
const READY_MS_MAX = 60_000;
const STOP_MS_MAX = 20_000;

interface Running {
  readonly plan: PlannedProcess;
  readonly child: ManagedProcess;
}

/** Starts the processes of a plan in order, watches them, stops them in order. */
export class Supervisor {
  /** Settles with the exit code of the first vital process that died by itself. */
  readonly vitalDeath: Promise<number>;
  readonly #running: Running[] = [];
  readonly #exec: string;
  readonly #print: PrintLine;
  readonly #died: (code: number) => void;
  #stopping = false;
  #broken = false;

  /** `exec`: path of belay-exec, under which each of them runs. */
  constructor(exec: string, print: PrintLine) {
    this.#exec = exec;
    this.#print = print;
    const { promise, resolve } = Promise.withResolvers<number>();
    this.vitalDeath = promise;
    this.#died = resolve;
  }

  /**
   * Starts group after group, each once the one before is ready. Answers whether all are; rejects if
   * one is not in time.
   */
  async start(groups: readonly (readonly PlannedProcess[])[]): Promise<boolean> {
    const [group, ...rest] = groups;
    if (this.#stopping || this.#broken) return false;
    if (group === undefined) return true;
    const started = group.map((plan) => this.#spawn(plan));
    await Promise.all(started.map((it) => this.#untilReady(it)));
    return this.start(rest);
  }

  /** Ends what runs, rank by rank; settles once nothing is left. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const ranks = [...new Set(this.#running.map(({ plan }) => plan.stopRank))];
    await this.#stopRanks(ranks.toSorted((a, b) => a - b));
  }

  /** Kills everything at once. */
  kill(): void {
    this.#stopping = true;
    for (const { child } of this.#running) child.kill();
  }

  async #stopRanks(ranks: readonly number[]): Promise<void> {
    const [rank, ...rest] = ranks;
    if (rank === undefined) return;
    const group = this.#running.filter(
      ({ plan, child }) => plan.stopRank === rank && child.running,
    );
    await Promise.all(
      group.map(async ({ plan, child }) => {
        await child.stop(STOP_MS_MAX);
        this.#print("belay", `${plan.name} stopped`);
      }),
    );
    await this.#stopRanks(rest);
  }

  #spawn(plan: PlannedProcess): Running {
    const child = new ManagedProcess({
      name: plan.name,
      command: plan.command,
      exec: this.#exec,
      // One port for all of them would be a collision.
      env: { ...process.env, BELAY_METRICS_PORT: undefined, ...plan.env },
      onLine: (line) => this.#print(plan.name, line),
    });
    const running = { plan, child };
    this.#running.push(running);
    void child.exited.then((code) => this.#ended(running, code));
    return running;
  }

  #ended({ plan, child }: Running, code: number): void {
    if (this.#stopping) return;
    const last = child.lastLines.slice(-5).join("\n    ");
    const rest = plan.vital ? "Belay stops." : "The rest goes on.";
    this.#print(plan.name, `ended with exit code ${code}. ${rest} Its last words:\n    ${last}`);
    if (!plan.vital) return;
    this.#broken = true;
    this.#died(code);
  }

  async #untilReady(running: Running): Promise<void> {
    const deadlineMs = performance.now() + READY_MS_MAX;
    const { plan, child } = running;
    const probe = async (): Promise<void> => {
      if (this.#stopping || !child.running) return;
      if (await plan.isReady().catch(() => false)) return;
      if (performance.now() > deadlineMs) {
        const why = `${plan.name} is not ready after ${READY_MS_MAX / 1000} s; its log is above`;
        throw new BelayError("timeout", why);
      }
      await delay(PROBE_EVERY_MS);
      await probe();
    };
    await probe();
  }
}
