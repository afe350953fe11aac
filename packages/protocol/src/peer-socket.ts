import type { Socket } from "node:net";
import { BadFrame, encodeFrame, type FrameBody, FrameDecoder } from "./frame.ts";

/** How long a closing socket may take to send what is queued. */
const CLOSE_MS_MAX = 1000;

/** Why a peer's connection ended. `slow-reader`: it did not read what was queued for it (F2). */
export type PeerEnd = "ended" | "lost" | "bad-frame" | "slow-reader" | "closed";

export interface PeerSocketOptions {
  readonly socket: Socket;
  /** Bytes that may wait for the peer to read them; beyond it is cut. */
  readonly outgoingBytesMax: number;
  onFrame(body: FrameBody): void;
  /** Once, after which nothing is sent or delivered. */
  onEnd(end: PeerEnd, cause?: Error): void;
}

/** What a peer is told before its connection is closed, or in answer to one request. */
export interface ProblemInit {
  readonly code: string;
  readonly message: string;
  readonly requestId?: number;
  readonly retryAfterMs?: number;
}

/**
 * The accepting end of one framed connection. Never buffers more than `outgoingBytesMax` for a slow
 * reader, and stops reading from a peer that has half of that to read, so that answers cannot pile up.
 */
export class PeerSocket {
  readonly #socket: Socket;
  readonly #options: PeerSocketOptions;
  readonly #decoder: FrameDecoder;
  #ended = false;
  #corked = false;
  #heldByQueue = false;
  #heldByOwner = false;

  constructor(options: PeerSocketOptions) {
    this.#options = options;
    this.#socket = options.socket;
    this.#decoder = new FrameDecoder((body) => options.onFrame(body));
    this.#socket.setNoDelay(true);
    this.#socket.on("data", (chunk: Buffer) => this.#take(chunk));
    this.#socket.on("drain", () => this.#release());
    this.#socket.on("end", () => this.#end("ended"));
    this.#socket.on("error", (cause) => this.#end("lost", cause));
    this.#socket.on("close", () => this.#end("lost"));
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Bytes that the peer has not yet taken. */
  get queuedBytes(): number {
    return this.#socket.writableLength;
  }

  /** Queues an encoded frame, in order. Cuts the peer when it has not read enough of what came before. */
  send(wire: Uint8Array): void {
    if (this.#ended) return;
    if (!this.#corked) this.#cork();
    this.#socket.write(wire);
    const queued = this.#socket.writableLength;
    if (queued > this.#options.outgoingBytesMax) {
      this.#end("slow-reader");
    } else if (queued > this.#options.outgoingBytesMax / 2) {
      this.#heldByQueue = true;
      this.#socket.pause();
    }
  }

  /** Says why, then closes. */
  fail(problem: ProblemInit): void {
    this.#sendProblem(problem);
    this.close();
  }

  /** Sends what is queued and closes; what the peer still says is not read. */
  close(): void {
    this.#close("closed");
  }

  /** Closes without sending what is queued: after this nothing of ours reaches the peer. */
  destroy(): void {
    this.#end("closed");
  }

  /** Stops and starts reading: backpressure of whoever handles the frames. */
  holdReading(held: boolean): void {
    this.#heldByOwner = held;
    if (this.#ended) return;
    if (held) this.#socket.pause();
    else if (!this.#heldByQueue) this.#socket.resume();
  }

  /** All frames of one turn leave in one write. */
  #cork(): void {
    this.#corked = true;
    this.#socket.cork();
    queueMicrotask(() => {
      this.#corked = false;
      this.#socket.uncork();
    });
  }

  #take(chunk: Buffer): void {
    if (this.#ended) return;
    try {
      this.#decoder.push(chunk);
    } catch (error) {
      // What a handler throws is a fault of ours, not of the peer.
      if (!(error instanceof BadFrame)) throw error;
      this.#sendProblem({ code: "bad-frame", message: error.message });
      this.#close("bad-frame", error);
    }
  }

  #release(): void {
    this.#heldByQueue = false;
    if (!this.#heldByOwner && !this.#ended) this.#socket.resume();
  }

  #sendProblem(problem: ProblemInit): void {
    this.send(encodeFrame({ case: "problem", value: { ...problem, fatal: true } }));
  }

  #close(end: PeerEnd, cause?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#decoder.stop();
    this.#socket.end();
    const timer = setTimeout(() => this.#socket.destroy(), CLOSE_MS_MAX);
    timer.unref();
    this.#socket.once("close", () => clearTimeout(timer));
    this.#socket.resume();
    this.#options.onEnd(end, cause);
  }

  #end(end: PeerEnd, cause?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#decoder.stop();
    this.#socket.destroy();
    this.#options.onEnd(end, cause);
  }
}
