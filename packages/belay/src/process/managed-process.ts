import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import { readLines } from "./log-lines.ts";

const LAST_LINES_MAX = 20;

export interface ManagedProcessOptions {
  readonly name: string;
  readonly command: readonly [program: string, ...args: string[]];
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Each line that it prints. */
  onLine(line: string): void;
}

/**
 * A child in a process group of its own: no Ctrl-C of the terminal reaches it but through us. Its
 * standard input ends when we do.
 */
export class ManagedProcess {
  readonly name: string;
  /** Settles with its exit code, 128 + signal for a signal. Never rejects. */
  readonly exited: Promise<number>;
  readonly lastLines: string[] = [];
  readonly #child: ChildProcess;
  #running = true;

  constructor(options: ManagedProcessOptions) {
    const [program, ...args] = options.command;
    this.name = options.name;
    const child = spawn(program, args, {
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
      env: options.env ?? process.env,
      cwd: options.cwd,
    });
    this.#child = child;
    // The child may be gone before it reads anything: nothing is ever written.
    child.stdin.on("error", () => undefined);
    const take = (line: string): void => {
      this.lastLines.push(line);
      if (this.lastLines.length > LAST_LINES_MAX) this.lastLines.shift();
      options.onLine(line);
    };
    readLines(child.stdout, take);
    readLines(child.stderr, take);
    const { promise, resolve } = Promise.withResolvers<number>();
    this.exited = promise;
    const end = (code: number): void => {
      this.#running = false;
      resolve(code);
    };
    child.on("error", (error) => {
      take(`cannot be started: ${error.message}`);
      end(127);
    });
    // "exit", not "close": a grandchild may keep the pipes open.
    child.on("exit", (code, signal) => {
      end(signal === null ? (code ?? 1) : 128 + constants.signals[signal]);
    });
  }

  get running(): boolean {
    return this.#running;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Sends a signal to it alone. */
  signal(name: NodeJS.Signals): void {
    if (this.#running) this.#child.kill(name);
  }

  /** Kills its whole process group, what it left behind included. */
  killGroup(): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // ESRCH: nobody is left in it.
    }
  }

  /** SIGTERM, then after `deadlineMs` SIGKILL for its group; settles with the exit code. */
  async stop(deadlineMs: number): Promise<number> {
    this.signal("SIGTERM");
    const timer = setTimeout(() => this.killGroup(), deadlineMs);
    const code = await this.exited;
    clearTimeout(timer);
    return code;
  }
}
