import { createHash } from "node:crypto";
import { once } from "node:events";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import http2 from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";

/** What a handler saw. */
export interface Seen {
  readonly server: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly trailers: Readonly<Record<string, string | undefined>>;
  readonly bytes: number;
  readonly sha1: string;
}

/**
 * A server that answers with what it saw. While `refuses` says so it refuses as the protocol says
 * (G4), and no handler runs. `answer` may take the answer over.
 */
export class FakeServer {
  readonly name: string;
  incarnation = 0n;
  /** Keys that it refuses, all if "*". The value is as-of. */
  readonly refuses = new Map<string, bigint>();
  /** Refuses before the body has come. */
  refusesEarly = false;
  /** Another incarnation's name in refusals. */
  refusesAs: bigint | undefined;
  answer: ((request: IncomingMessage, response: ServerResponse, seen: Seen) => void) | undefined;
  readonly seen: Seen[] = [];
  readonly sockets: { key: string; socket: WebSocket }[] = [];
  refusals = 0;
  readonly #server: http.Server | http2.Http2Server;
  readonly #connections = new Set<Socket>();
  readonly #websockets = new WebSocketServer({ noServer: true });

  constructor(name: string, options: { http2?: boolean } = {}) {
    this.name = name;
    this.#server =
      options.http2 === true
        ? http2.createServer((request, response) => {
            // The compatibility objects do all that is used of the others here.
            this.#take(
              request as unknown as IncomingMessage,
              response as unknown as ServerResponse,
            );
          })
        : http.createServer((request, response) => this.#take(request, response));
    this.#server.on("connection", (socket: Socket) => {
      this.#connections.add(socket);
      socket.on("error", () => {}).on("close", () => this.#connections.delete(socket));
    });
    this.#server.on("sessionError", () => {});
    this.#server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.#upgrade(request, socket, head);
    });
  }

  async listen(port = 0): Promise<string> {
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
    return this.address;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#connections) socket.destroy();
    await closed;
  }

  #asOf(headers: Seen["headers"]): bigint | undefined {
    return this.refuses.get(keyOf(headers)) ?? this.refuses.get("*");
  }

  #refusal(asOf: bigint): Record<string, string> {
    this.refusals++;
    const incarnation = this.refusesAs ?? this.incarnation;
    return { "x-belay-refused": `${incarnation}; as-of=${asOf}; reason=moved` };
  }

  #refuse(request: IncomingMessage, response: ServerResponse, asOf: bigint): void {
    const refusal = this.#refusal(asOf);
    const grpc = request.headers["content-type"]?.startsWith("application/grpc") === true;
    if (grpc) {
      const headers = { "content-type": "application/grpc", "grpc-status": "14", ...refusal };
      response.writeHead(200, headers);
    } else response.writeHead(421, refusal);
    response.end();
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    request.on("error", () => {});
    response.on("error", () => {});
    if (this.refusesEarly) {
      const asOf = this.#asOf(request.headers);
      if (asOf !== undefined) return this.#refuse(request, response, asOf);
    }
    let bytes = 0;
    const hash = createHash("sha1");
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      hash.update(chunk);
    });
    request.on("end", () => {
      const asOf = this.#asOf(request.headers);
      if (asOf !== undefined) return this.#refuse(request, response, asOf);
      const seen: Seen = {
        server: this.name,
        method: request.method ?? "",
        path: request.url ?? "",
        headers: request.headers,
        trailers: request.trailers,
        bytes,
        sha1: hash.digest("hex"),
      };
      this.seen.push(seen);
      if (this.answer !== undefined) return this.answer(request, response, seen);
      const body = JSON.stringify(seen);
      response.writeHead(200, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      });
      response.end(body);
    });
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => {});
    const asOf = this.#asOf(request.headers);
    if (asOf !== undefined) {
      const [[name, value]] = Object.entries(this.#refusal(asOf)) as [[string, string]];
      socket.end(
        `HTTP/1.1 421 Misdirected Request\r\n${name}: ${value}\r\ncontent-length: 0\r\n\r\n`,
      );
      return;
    }
    this.#websockets.handleUpgrade(request, socket, head, (accepted) => {
      const key = keyOf(request.headers);
      this.sockets.push({ key, socket: accepted });
      accepted.on("error", () => {});
      accepted.on("message", (data: Buffer) => accepted.send(`${this.name}:${data.toString()}`));
    });
  }
}

function keyOf(headers: Seen["headers"]): string {
  const key = headers["x-belay-key"];
  return typeof key === "string" ? decodeURIComponent(key) : "";
}
