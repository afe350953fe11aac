import { connect, type Socket } from "node:net";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Clock, Logger, Random } from "@belay/model";
import {
  BadFrame,
  encodeFrame,
  type FrameBody,
  type FrameBodyInit,
  FrameDecoder,
} from "./frame.ts";
import type { Answer, AskSchema, ServiceSpecSchema } from "./gen/belay/v1/admin_pb.ts";
import type { Problem, Role, Welcome } from "./gen/belay/v1/frame_pb.ts";
import { PendingRequests, RequestFailed } from "./request.ts";

export const PROTOCOL_VERSION = 1;
const BACKOFF_MS_MIN = 50;
const BACKOFF_MS_MAX = 1000;
const CLOSE_MS_MAX = 2000;
const PING_MS = 1000;
/**
 * Pings without an answer after which a connection counts as lost. Counted, not timed: a process
 * that was stalled itself hears what waits for it before the next ping.
 */
const SILENT_PINGS_MAX = 4;
/** The same before Welcome. */
const SILENT_HELLO_PINGS_MAX = 2;
const REQUESTS_MAX = 10_000;
const REQUEST_MS = 5000;
const OUTGOING_BYTES_MAX = 16 * 1024 * 1024;
const GENERATIONS_MAX = 16;

/** A question of `Ask`: `{ case: "owner", value: { service, key } }`. */
export type AskInit = NonNullable<MessageInitShape<typeof AskSchema>["question"]>;

export interface CoordinatorAddress {
  readonly host: string;
  readonly port: number;
}

export interface CoordinatorConnectionOptions {
  readonly address: CoordinatorAddress;
  readonly role: Role;
  /** For people: "edge-1"; 1..128 bytes. */
  readonly name: string;
  readonly software: string;
  readonly token?: string;
  readonly pool?: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /**
   * The highest revision this peer has applied of `generation`: a feed resumes after it (F1). By
   * default the highest that any frame named.
   */
  resumeFrom?(generation: Uint8Array): bigint;
  /** After each Hello was accepted; requests and frames may be sent from here on. */
  onConnected?(welcome: Welcome): void;
  /** Every frame but Welcome, Ping, Pong and answers to `request`. */
  onFrame?(body: FrameBody): void;
  /** The connection is gone or was refused; the next try follows by itself. */
  onDisconnected?(reason: DisconnectReason): void;
}

export interface DisconnectReason {
  readonly code: "lost" | "refused" | "stale-term" | "bad-frame" | "silent" | "closed";
  readonly message: string;
  /** With `refused`: what the coordinator said. */
  readonly problemCode?: string;
}

/** What `bytes` names, for maps. */
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/**
 * A peer's end of the coordinator protocol: connects, says Hello, reconnects with jittered back-off
 * for ever until `close()`. Never talks to a coordinator of a lower term than it has seen (G2), and
 * tells each one the generation and revision that it has seen (T4).
 */
export class CoordinatorConnection {
  readonly #options: CoordinatorConnectionOptions;
  /** Random 128 bits of this process's life (P7). */
  readonly processId: Uint8Array;
  readonly #pending = new PendingRequests(REQUESTS_MAX);
  readonly #terms = new Map<string, bigint>();
  #generation = new Uint8Array(0);
  #revision = 0n;
  #socket: Socket | undefined;
  #welcome: Welcome | undefined;
  #failures = 0;
  #retryTimer: NodeJS.Timeout | undefined;
  #pingTimer: NodeJS.Timeout | undefined;
  #silentPings = 0;
  #awaySinceMs: number;
  #closed = false;

  constructor(options: CoordinatorConnectionOptions) {
    this.#options = options;
    this.processId = options.random.bytes(16);
    this.#awaySinceMs = options.clock.now();
    this.#open();
  }

  get connected(): boolean {
    return this.#welcome !== undefined;
  }

  /** The Welcome of the connection that is up. */
  get welcome(): Welcome | undefined {
    return this.#welcome;
  }

  /** Highest term seen of the generation now in use. */
  get term(): bigint {
    return this.#terms.get(hex(this.#generation)) ?? 0n;
  }

  /** Sends one frame, in order. False: not connected, nothing was sent. */
  send(body: FrameBodyInit): boolean {
    const socket = this.#socket;
    if (socket === undefined || this.#welcome === undefined) return false;
    socket.write(encodeFrame(body));
    if (socket.writableLength > OUTGOING_BYTES_MAX) {
      this.#drop(socket, { code: "silent", message: "the coordinator does not read" });
      return false;
    }
    return true;
  }

  /**
   * Sends the request that `build` makes of its id and waits for the frame of that id, of which
   * `pick` takes what is wanted. Rejects with RequestFailed. Never sent again by itself.
   */
  async request<T>(
    build: (requestId: number) => FrameBodyInit,
    pick: (body: FrameBody) => T | undefined,
    timeoutMs: number = REQUEST_MS,
  ): Promise<T> {
    if (!this.connected) {
      throw new RequestFailed("not-connected", "no connection to the coordinator");
    }
    const { requestId, answer } = this.#pending.open(timeoutMs);
    if (requestId !== 0) this.send(build(requestId));
    const body = await answer;
    const picked = pick(body);
    if (picked === undefined) throw new RequestFailed("refused", `answered by ${body.case}`);
    return picked;
  }

  /** An operator's question or order. Rejects with RequestFailed: `refused` carries the code. */
  async ask(question: AskInit, timeoutMs?: number): Promise<Answer["answer"]> {
    const answer = await this.request(
      (requestId) => ({ case: "ask", value: { requestId, question } }),
      (body) => (body.case === "answer" ? body.value : undefined),
      timeoutMs,
    );
    if (answer.problemCode !== "") {
      throw new RequestFailed("refused", answer.problemMessage, answer.problemCode);
    }
    return answer.answer;
  }

  /** Defines services, and removes those named; the revision at which all of it is committed. */
  async defineServices(
    services: MessageInitShape<typeof ServiceSpecSchema>[],
    removed: string[] = [],
  ): Promise<bigint> {
    const defined = await this.request(
      (requestId) => ({ case: "defineServices", value: { requestId, services, removed } }),
      (body) => (body.case === "servicesDefined" ? body.value : undefined),
    );
    return defined.revision;
  }

  /** Remembers that `revision` of the generation in use was seen, for the next Hello (T4). */
  sawRevision(revision: bigint): void {
    if (revision > this.#revision) this.#revision = revision;
  }

  /** Ends the connection for good, after what was sent has left. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#retryTimer);
    const socket = this.#socket;
    if (socket === undefined) return;
    this.#forget({ code: "closed", message: "closed by this process" });
    socket.end();
    const timer = setTimeout(() => socket.destroy(), CLOSE_MS_MAX);
    timer.unref();
    socket.once("close", () => clearTimeout(timer));
  }

  #open(): void {
    const { address } = this.#options;
    const socket = connect({ host: address.host, port: address.port, noDelay: true });
    this.#socket = socket;
    this.#silentPings = 0;
    const decoder = new FrameDecoder((body) => this.#take(socket, body));
    socket.on("connect", () => socket.write(encodeFrame(this.#hello())));
    socket.on("data", (chunk: Buffer) => {
      this.#silentPings = 0;
      try {
        decoder.push(chunk);
      } catch (error) {
        if (!(error instanceof BadFrame)) throw error;
        this.#drop(socket, { code: "bad-frame", message: error.message });
      }
    });
    socket.on("error", (cause) => this.#drop(socket, { code: "lost", message: cause.message }));
    socket.on("close", () => this.#drop(socket, { code: "lost", message: "connection closed" }));
    this.#pingTimer = setInterval(() => this.#ping(socket), PING_MS);
  }

  #hello(): FrameBodyInit {
    const options = this.#options;
    const generation = this.#generation;
    return {
      case: "hello",
      value: {
        protocolVersion: PROTOCOL_VERSION,
        role: options.role,
        name: options.name,
        software: options.software,
        token: options.token ?? "",
        pool: options.pool ?? "",
        processId: this.processId,
        generation,
        revision: options.resumeFrom?.(generation) ?? this.#revision,
        term: this.term,
      },
    };
  }

  #ping(socket: Socket): void {
    this.#silentPings += 1;
    if (this.#silentPings > (this.connected ? SILENT_PINGS_MAX : SILENT_HELLO_PINGS_MAX)) {
      this.#drop(socket, { code: "silent", message: "the coordinator does not answer" });
    } else {
      this.send({ case: "ping", value: { nonce: 0 } });
    }
  }

  #take(socket: Socket, body: FrameBody): void {
    if (socket !== this.#socket) return;
    if (body.case === "welcome") return this.#accept(socket, body.value);
    if (body.case === "pong") return undefined;
    if (body.case === "ping") {
      this.send({ case: "pong", value: { nonce: body.value.nonce } });
      return undefined;
    }
    if (body.case === "problem" && body.value.fatal) return this.#refused(socket, body.value);
    if (!this.#pending.settle(body)) this.#options.onFrame?.(body);
    return undefined;
  }

  #accept(socket: Socket, welcome: Welcome): void {
    const generation = hex(welcome.generation);
    const seen = this.#terms.get(generation) ?? 0n;
    if (welcome.term < seen) {
      const message = `coordinator has term ${welcome.term}, ${seen} was seen: it is deposed`;
      return this.#drop(socket, { code: "stale-term", message });
    }
    if (hex(this.#generation) !== generation) {
      this.#generation = Uint8Array.from(welcome.generation);
      this.#revision = 0n;
    }
    if (this.#terms.size >= GENERATIONS_MAX) this.#terms.clear();
    this.#terms.set(generation, welcome.term);
    this.sawRevision(welcome.revision);
    this.#welcome = welcome;
    this.#failures = 0;
    const { clock, logger } = this.#options;
    const awayMs = Math.round(clock.now() - this.#awaySinceMs);
    logger.debug({ term: welcome.term, awayMs }, "connected to the coordinator");
    this.#options.onConnected?.(welcome);
    return undefined;
  }

  #refused(socket: Socket, problem: Problem): void {
    this.#drop(
      socket,
      { code: "refused", message: problem.message, problemCode: problem.code },
      problem.retryAfterMs,
    );
  }

  #drop(socket: Socket, reason: DisconnectReason, retryAfterMs = 0): void {
    if (socket !== this.#socket) return;
    socket.destroy();
    this.#forget(reason);
    if (!this.#closed) this.#retryLater(retryAfterMs);
  }

  #forget(reason: DisconnectReason): void {
    clearInterval(this.#pingTimer);
    this.#socket = undefined;
    const { clock, logger } = this.#options;
    if (this.#welcome !== undefined) this.#awaySinceMs = clock.now();
    this.#welcome = undefined;
    logger.debug({ code: reason.code }, `not connected to the coordinator: ${reason.message}`);
    this.#pending.failAll("lost", `connection to the coordinator lost: ${reason.message}`);
    this.#options.onDisconnected?.(reason);
  }

  #retryLater(retryAfterMs: number): void {
    const ceilingMs = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
    // Equal jitter: a restarted coordinator is not met by everybody in the same millisecond.
    const jitteredMs = ceilingMs / 2 + (this.#options.random.next() * ceilingMs) / 2;
    this.#retryTimer = setTimeout(() => this.#open(), Math.max(jitteredMs, retryAfterMs));
  }
}
