import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import { Duplex, type Readable } from "node:stream";
import { EXIT } from "../cli/exit-code.ts";
import { readLines } from "./log-lines.ts";

const CONTROL_FD = 3;
/** Exit code of belay-exec when a system call failed and it gave up. */
const EXEC_FAILED = 71;

export interface ExecProcessOptions {
  /** Path of belay-exec. */
  readonly exec: string;
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** `inherit`: it has our terminal; `pipe`: `stdout` and `stderr` are streams of ours. */
  readonly stdio: "inherit" | "pipe";
  /** From SIGTERM to SIGKILL, should this process be killed itself. */
  readonly graceMs: number;
  /** What belay-exec says about itself. */
  onProblem(message: string): void;
}

/** How a command ended. `proven`: no process of it is left, by the word of belay-exec (S8). */
export interface ExecEnd {
  readonly status: number;
  readonly proven: boolean;
}

/** What to tell the coordinator if this process is killed and belay-exec has to speak for it. */
export interface ExecSession {
  /** "ip:port" */
  readonly coordinator: string;
  readonly incarnation: bigint;
  readonly secret: Uint8Array;
  readonly token: string | undefined;
}

/**
 * A command under belay-exec: in a process group of its own, with everything that it starts as
 * descendants of belay-exec, and ended with them when this process is gone.
 */
export class ExecProcess {
  /** Its pid; rejects with an Error that has the exit status if it cannot be started. */
  readonly started: Promise<number>;
  /** Status of the command itself, 128 + signal; descendants may still run. Never rejects. */
  readonly exited: Promise<number>;
  /** Nothing runs any more. Never rejects. */
  readonly ended: Promise<ExecEnd>;
  readonly #child: ChildProcess;
  readonly #control: Duplex;
  readonly #started = Promise.withResolvers<number>();
  readonly #exited = Promise.withResolvers<number>();
  readonly #ended = Promise.withResolvers<ExecEnd>();
  #hasStarted = false;
  #proven = false;
  #status: number | undefined;
  #isEnded = false;
  #isStopping = false;

  constructor(options: ExecProcessOptions) {
    this.started = this.#started.promise;
    this.exited = this.#exited.promise;
    this.ended = this.#ended.promise;
    this.started.catch(() => undefined);
    const args = ["--control-fd", String(CONTROL_FD), "--grace-ms", String(options.graceMs), "--"];
    const { stdio } = options;
    const child = spawn(options.exec, [...args, ...options.command], {
      stdio: [stdio === "pipe" ? "ignore" : stdio, stdio, stdio, "pipe"],
      env: options.env,
    });
    this.#child = child;
    const control = child.stdio[CONTROL_FD];
    if (!(control instanceof Duplex)) throw new TypeError("no control channel to belay-exec");
    this.#control = control;
    // Whoever has ended reads no more orders: its "exit" says so.
    control.on("error", () => undefined);
    readLines(control, (line) => this.#take(line, options));
    child.on("error", (error) => this.#finish(EXIT.cannotExecute, error.message));
    child.on("exit", (code, signal) => {
      // A write to one that has just ended loses what it said last. Its exit says the same: once the
      // command has run, it ends by itself only when nothing is left, or as EXEC_FAILED.
      if (this.#hasStarted && code !== null && code !== EXEC_FAILED) this.#proven = true;
      const own = signal === null ? (code ?? 1) : 128 + constants.signals[signal];
      // The last lines of the control channel may still be on their way.
      if (control.readableEnded || control.destroyed) this.#finish(own);
      else control.once("close", () => this.#finish(own));
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** We have asked it to end. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  get output(): readonly Readable[] {
    return [this.#child.stdout, this.#child.stderr].filter((it) => it !== null);
  }

  /** `all`: also every process that it started and left behind. */
  signal(signal: NodeJS.Signals, to: "command" | "all" = "command"): void {
    this.#order({ do: "kill", signal, to });
  }

  /** SIGTERM, after `deadlineMs` SIGKILL for everything; settles once nothing runs any more. */
  async stop(deadlineMs: number): Promise<ExecEnd> {
    this.#isStopping = true;
    this.signal("SIGTERM");
    this.signal("SIGCONT");
    const timer = setTimeout(() => this.signal("SIGKILL", "all"), deadlineMs);
    // What the command leaves behind when it ends is not waited for.
    void this.exited.then(() => this.signal("SIGTERM", "all"));
    const end = await this.ended;
    clearTimeout(timer);
    return end;
  }

  tellSession(session: ExecSession): void {
    this.#order({
      do: "session",
      coordinator: session.coordinator,
      incarnation: String(session.incarnation),
      secret: Buffer.from(session.secret).toString("hex"),
      token: session.token ?? "",
    });
  }

  #order(order: Readonly<Record<string, string>>): void {
    if (!this.#isEnded && this.#control.writable) this.#control.write(`${JSON.stringify(order)}\n`);
  }

  #take(line: string, options: ExecProcessOptions): void {
    const event: unknown = JSON.parse(line);
    if (typeof event !== "object" || event === null || !("event" in event)) return;
    if (event.event === "started" && "pid" in event) {
      this.#hasStarted = true;
      this.#started.resolve(Number(event.pid));
    } else if (event.event === "exited" && "status" in event) {
      this.#status = Number(event.status);
      this.#exited.resolve(this.#status);
    } else if (event.event === "empty") this.#proven = true;
    else if ("message" in event) {
      if (event.event === "failed") this.#started.reject(new Error(String(event.message)));
      else options.onProblem(String(event.message));
    }
  }

  #finish(own: number, why = "belay-exec ended before it started the command"): void {
    const status = this.#status ?? own;
    this.#isEnded = true;
    this.#started.reject(new Error(why));
    this.#exited.resolve(status);
    this.#ended.resolve({ status, proven: this.#proven });
  }
}
