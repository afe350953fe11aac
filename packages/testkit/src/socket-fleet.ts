import { WebSocket } from "ws";
import { until } from "./until.ts";

export interface SocketClosed {
  readonly key: string;
  readonly code: number;
  /** Messages sent and not answered when it closed. */
  readonly unanswered: number;
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
  readonly #sockets = new Map<string, { socket: WebSocket; sent: number; answered: number }>();
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
    const entry = { socket, sent: 0, answered: 0 };
    this.#sockets.set(key, entry);
    socket.on("message", () => {
      entry.answered += 1;
      this.answers += 1;
    });
    socket.on("error", (error) => {
      if (socket.readyState === socket.CONNECTING) this.failedToOpen.push(`${key}: ${error}`);
    });
    socket.on("close", (code) => {
      if (this.#stopping) return;
      this.closed.push({ key, code, unanswered: entry.sent - entry.answered });
      this.#open(key);
    });
  }

  #beat(): void {
    for (const entry of this.#sockets.values()) {
      if (entry.socket.readyState !== entry.socket.OPEN) continue;
      entry.socket.send("beat");
      entry.sent += 1;
    }
  }
}
