import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { until } from "./until.ts";

export interface ChildOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Own process group, so that `kill` with `group` reaches grandchildren. */
  readonly detached?: boolean;
}

/** A process under test: keeps what it prints, waits for lines, ends it by pid. */
export class Child {
  readonly name: string;
  readonly process: ChildProcess;
  output = "";
  #exit: Promise<number>;

  constructor(name: string, command: readonly string[], options: ChildOptions = {}) {
    const [program, ...args] = command;
    if (program === undefined) throw new Error("no command");
    this.name = name;
    this.process = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...options.env },
      detached: options.detached ?? false,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.output = (this.output + text).slice(-1_000_000);
      });
    }
    this.#exit = this.#waitForExit();
    this.#exit.catch(() => {});
  }

  get pid(): number {
    if (this.process.pid === undefined) throw new Error(`${this.name} did not start`);
    return this.process.pid;
  }

  get running(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null;
  }

  /** The exit code, 128 + signal number for a signal. */
  async exited(): Promise<number> {
    return this.#exit;
  }

  /** Waits until the output has `pattern`; fails at once if the process ends before. */
  async printed(pattern: RegExp, deadlineMs = 20_000): Promise<RegExpMatchArray> {
    const found = await until(
      `${this.name} prints ${pattern}`,
      () => this.output.match(pattern) ?? (this.running ? undefined : ("ended" as const)),
      deadlineMs,
    ).catch((error: unknown) => {
      throw new Error(`${this.name}: no ${pattern} in:\n${this.output.slice(-4_000)}`, {
        cause: error,
      });
    });
    if (found === "ended") {
      throw new Error(`${this.name} ended before ${pattern}:\n${this.output.slice(-4_000)}`);
    }
    return found;
  }

  signal(name: NodeJS.Signals, options: { group?: boolean } = {}): void {
    if (this.running) process.kill(options.group === true ? -this.pid : this.pid, name);
  }

  /** SIGTERM, then SIGKILL after `graceMs`. Answers the exit code. */
  async stop(graceMs = 15_000): Promise<number> {
    this.signal("SIGTERM");
    const timer = setTimeout(() => {
      this.signal("SIGKILL");
    }, graceMs);
    const code = await this.#exit;
    clearTimeout(timer);
    return code;
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.#exit;
  }

  async #waitForExit(): Promise<number> {
    const [code, signal] = (await once(this.process, "close")) as [
      number | null,
      NodeJS.Signals | null,
    ];
    if (code !== null) return code;
    const { constants } = await import("node:os");
    return 128 + (signal === null ? 0 : constants.signals[signal]);
  }
}
