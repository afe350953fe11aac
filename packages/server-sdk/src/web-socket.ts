import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import type { Logger } from "@belay/model";
import type { RawData, WebSocket, WebSocketServer } from "ws";
import type { Gate } from "./gate.ts";
import { parseIdentity } from "./identity.ts";
import { refuseUpgrade } from "./refusal.ts";
import { RequestContext } from "./request-context.ts";
import type { Visit } from "./visit.ts";

/** The close code that tells a client that its key has moved: connect again. */
export const CLOSE_MOVED = 4421;
/** How long the client may take to answer our close. */
const CLOSE_MS_MAX = 1000;

/** Handles one message; while its promise is pending, the message is in hand (W2). */
export type MessageHandler = (data: RawData, isBinary: boolean) => unknown;

/**
 * Gets each admitted socket. The handler it returns, if any, gets the socket's messages; a plain
 * `socket.on("message")` works too, but only until it returns counts as in hand.
 */
export type SocketHandler = (
  socket: WebSocket,
  request: IncomingMessage,
  context: RequestContext,
) => MessageHandler | void;

export interface WebSocketOptions {
  readonly gate: Gate;
  readonly logger: Logger;
  readonly server: Server;
  /** Made with `noServer: true`. */
  readonly sockets: WebSocketServer;
  readonly handle: SocketHandler;
}

/** Until `ws` has the socket, a lost connection is no error: "close" follows. */
const ignore = (): void => undefined;

/** Admission at the handshake (W1), then per message in both directions (G6). */
export function attachWebSocket(options: WebSocketOptions): void {
  const { gate, server, sockets, handle, logger } = options;
  const epochs = new WeakMap<IncomingMessage, bigint>();
  sockets.on("headers", (headers, request) => {
    const epoch = epochs.get(request);
    if (epoch !== undefined) headers.push(`x-belay-epoch: ${epoch}`);
  });
  server.on("upgrade", (request, raw: Duplex, head: Buffer) => {
    let guarded: GuardedSocket | undefined;
    let isLeaving = false;
    raw.on("error", ignore);
    const visit = gate.enter("socket", parseIdentity(request.headers), {
      admitted: (admitted) => {
        epochs.set(request, admitted.epoch);
        raw.off("error", ignore);
        sockets.handleUpgrade(request, raw, head, (socket) => {
          const context = new RequestContext(admitted.key, admitted.epoch);
          guarded = new GuardedSocket({ socket, visit: admitted, context, logger });
          // `ws` may have asked the application first (verifyClient), who took its time (G1).
          if (isLeaving) return guarded.leave();
          if (!guarded.checkOwned()) return;
          guarded.open(() => handle(socket, request, context));
          sockets.emit("connection", socket, request);
        });
      },
      refused: (refusal) => refuseUpgrade(raw, refusal),
      lost: () => {
        if (guarded === undefined) raw.destroy();
        else guarded.cut();
      },
      leaving: () => {
        isLeaving = true;
        guarded?.leave();
      },
    });
    raw.once("close", () => visit.end());
  });
}

class GuardedSocket {
  readonly #socket: WebSocket;
  readonly #visit: Visit;
  readonly #context: RequestContext;
  readonly #logger: Logger;
  #inHand = 0;
  #leaving = false;

  constructor(options: {
    socket: WebSocket;
    visit: Visit;
    context: RequestContext;
    logger: Logger;
  }) {
    this.#socket = options.socket;
    this.#visit = options.visit;
    this.#context = options.context;
    this.#logger = options.logger;
    this.#guardIncoming();
    this.#guardOutgoing();
    this.#socket.once("close", () => this.#context.lost());
    // Broken frames of a client end its socket; without a listener they would end the process.
    this.#socket.on("error", (error) => {
      this.#logger.debug({ error: error.message }, "socket failed");
    });
  }

  open(handle: () => MessageHandler | void): void {
    const onMessage = handle();
    if (typeof onMessage !== "function") return;
    this.#socket.on("message", (data: RawData, isBinary: boolean) => {
      void this.#take(onMessage, data, isBinary);
    });
  }

  /** Whether this server may act for the key now; if not, the socket is cut. Reads the clock. */
  checkOwned(): boolean {
    if (this.#visit.mayAnswer()) return true;
    this.#visit.end();
    this.cut();
    return false;
  }

  /** Ownership is lost: ended without a close frame, so nobody takes it for a clean end (G6). */
  cut(): void {
    this.#context.lost();
    this.#socket.terminate();
  }

  /** The shard moves: 4421 after the message in hand (W2). */
  leave(): void {
    if (this.#leaving) return;
    this.#leaving = true;
    this.#context.leave();
    this.#closeIfIdle();
  }

  async #take(onMessage: MessageHandler, data: RawData, isBinary: boolean): Promise<void> {
    this.#inHand += 1;
    try {
      await onMessage(data, isBinary);
    } catch (error) {
      const stack = error instanceof Error ? error.stack : String(error);
      this.#logger.error({ error: stack }, "message handler failed");
      this.#socket.close(1011, "internal error");
    } finally {
      this.#inHand -= 1;
      this.#closeIfIdle();
    }
  }

  #closeIfIdle(): void {
    if (!this.#leaving || this.#inHand > 0) return;
    this.#socket.close(CLOSE_MOVED, "moved");
    // Nothing goes out after a close frame and nothing is taken in: the shard may go.
    this.#visit.end();
    setTimeout(() => this.#socket.terminate(), CLOSE_MS_MAX).unref();
  }

  /** A message reaches its listeners only while this server may act for the key. */
  #guardIncoming(): void {
    const socket = this.#socket;
    const emit = socket.emit.bind(socket);
    socket.emit = (event: string | symbol, ...args: unknown[]): boolean => {
      if (event !== "message") return emit(event, ...args);
      if (this.#leaving || this.#visit.stage === "ended") return false;
      return this.checkOwned() && emit(event, ...args);
    };
  }

  #guardOutgoing(): void {
    const socket = this.#socket;
    const original: unknown = Reflect.get(socket, "send");
    if (typeof original !== "function") return;
    socket.send = (...args: unknown[]): void => {
      if (this.#visit.mayAnswer()) {
        Reflect.apply(original, socket, args);
        return;
      }
      const callback = args.at(-1);
      if (typeof callback === "function") callback(new Error("the key is not owned any more"));
      if (this.#visit.stage === "ended") return;
      this.#visit.end();
      this.cut();
    };
  }
}
