import { WebSocket } from "ws";
import { until } from "./until.ts";

export interface SocketClosed {
  readonly key: string;
  readonly code: number;
  /**
   * How long before the close the oldest message was sent that has no answer; 0: all have one. A message that
   * crosses the close on its way was never admitted (W2): its sender sends it again.
   */
  readonly unansweredMs: number;
}

/**
 * WebSockets, one per key, each sending a message a second and expecting an answer to each. A socket
 * that closes is recorded, and opened again when `reopen` says so.
 */
export class SocketFleet {
  readonly closed: SocketClosed[] = [];
  readonly failedToOpen: string[] = [];
  answers = 0;
  readonly #url: (key: string) => string;
  readonly #sockets = new Map<string, { socket: WebSocket; sentAtMs: number[] }>();
  readonly #timer: NodeJS.Timeout;
  #stopping = false;

  constructor(keys: readonly string[], url: (key: string) => string, periodMs = 1_000) {
    this.#url = url;
    for (const key of keys) this.#open(key);
    this.#timer = setInterval(() => {
      this.#beat();
    }, periodMs);
  }

  get open(): number {
    return [...this.#sockets.values()].filter(({ socket }) => socket.readyState === socket.OPEN)
      .length;
  }

  async allOpen(deadlineMs = 20_000): Promise<void> {
    await until("all sockets are open", () => this.open === this.#sockets.size, deadlineMs);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#timer);
    for (const { socket } of this.#sockets.values()) socket.close(1000);
    await until("all sockets are closed", () =>
      [...this.#sockets.values()].every(({ socket }) => socket.readyState === socket.CLOSED),
    );
  }

  #open(key: string): void {
    const socket = new WebSocket(this.#url(key));
    const entry = { socket, sentAtMs: [] as number[] };
    this.#sockets.set(key, entry);
    socket.on("message", () => {
      entry.sentAtMs.shift();
      this.answers += 1;
    });
    socket.on("error", (error) => {
      if (socket.readyState === socket.CONNECTING) this.failedToOpen.push(`${key}: ${error}`);
    });
    socket.on("close", (code) => {
      if (this.#stopping) return;
      const nowMs = performance.now();
      this.closed.push({ key, code, unansweredMs: nowMs - (entry.sentAtMs[0] ?? nowMs) });
      this.#open(key);
    });
  }

  #beat(): void {
    for (const entry of this.#sockets.values()) {
      if (entry.socket.readyState !== entry.socket.OPEN) continue;
      entry.sentAtMs.push(performance.now());
      entry.socket.send("beat");
    }
  }
}
