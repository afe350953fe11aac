import { ExecProcess } from "./exec-process.ts";
import { readLines } from "./log-lines.ts";

const LAST_LINES_MAX = 20;
const GRACE_MS = 5000;

export interface ManagedProcessOptions {
  readonly name: string;
  /** Path of belay-exec. */
  readonly exec: string;
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Each line that it prints. */
  onLine(line: string): void;
}

/**
 * A child whose output we read: in a process group of its own, so that no Ctrl-C of the terminal
 * reaches it but through us, and ended with all that it started when we are gone.
 */
export class ManagedProcess {
  readonly name: string;
  /** Settles with its exit code, 128 + signal for a signal. Never rejects. */
  readonly exited: Promise<number>;
  readonly lastLines: string[] = [];
  readonly #process: ExecProcess;

  constructor(options: ManagedProcessOptions) {
    this.name = options.name;
    const take = (line: string): void => {
      this.lastLines.push(line);
      if (this.lastLines.length > LAST_LINES_MAX) this.lastLines.shift();
      options.onLine(line);
    };
    this.#process = new ExecProcess({
      exec: options.exec,
      command: options.command,
      env: options.env,
      stdio: "pipe",
      graceMs: GRACE_MS,
      onProblem: take,
    });
    this.#process.started.catch((error: unknown) => take(String(error)));
    for (const stream of this.#process.output) readLines(stream, take);
    this.exited = this.#process.exited;
    // What it left behind would outlive its parent: nothing of ours may.
    void this.exited.then(() => this.kill());
  }

  get running(): boolean {
    return !this.#process.isEnded;
  }

  /** Kills it and all that it started. */
  kill(): void {
    this.#process.signal("SIGKILL", "all");
  }

  /** SIGTERM, after `deadlineMs` SIGKILL; settles with the exit code once nothing of it runs. */
  async stop(deadlineMs: number): Promise<number> {
    const { status } = await this.#process.stop(deadlineMs);
    return status;
  }
}
