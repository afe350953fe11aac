import { once } from "node:events";
import http2 from "node:http2";

export interface Http2Answer {
  readonly status: number;
  readonly headers: http2.IncomingHttpHeaders;
  readonly trailers: http2.IncomingHttpHeaders;
  readonly body: Buffer;
}

/** One connection with prior knowledge. */
export class Http2Client {
  readonly #session: http2.ClientHttp2Session;

  constructor(port: number) {
    this.#session = http2.connect(`http://127.0.0.1:${port}`);
    this.#session.on("error", () => {});
  }

  /** Sends `chunks` one after the other, each in its own DATA frame, then `trailers`. */
  async ask(
    headers: http2.OutgoingHttpHeaders,
    chunks: readonly Buffer[] = [],
    trailers?: Record<string, string>,
  ): Promise<Http2Answer> {
    const stream = this.#session.request(headers, {
      endStream: false,
      waitForTrailers: trailers !== undefined,
    });
    if (trailers !== undefined) stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    const { promise, resolve, reject } = Promise.withResolvers<Http2Answer>();
    let answer: http2.IncomingHttpHeaders = {};
    let last: http2.IncomingHttpHeaders = {};
    const parts: Buffer[] = [];
    stream.on("response", (given) => (answer = given));
    stream.on("trailers", (given) => (last = given));
    stream.on("data", (chunk: Buffer) => parts.push(chunk));
    stream.on("error", reject);
    stream.on("end", () =>
      resolve({
        status: Number(answer[":status"]),
        headers: answer,
        trailers: last,
        body: Buffer.concat(parts),
      }),
    );
    for (const chunk of chunks) {
      await new Promise<void>((sent, failed) => {
        stream.write(chunk, (error) => (error ? failed(error) : sent()));
      });
    }
    stream.end();
    return promise;
  }

  /** A WebSocket by extended CONNECT (RFC 8441); answers the raw stream once it is accepted. */
  async socket(path: string): Promise<http2.ClientHttp2Stream> {
    if (this.#session.remoteSettings.enableConnectProtocol !== true) {
      await once(this.#session, "remoteSettings");
    }
    const stream = this.#session.request(
      {
        ":method": "CONNECT",
        ":protocol": "websocket",
        ":scheme": "http",
        ":path": path,
        ":authority": "x",
        "sec-websocket-version": "13",
        // RFC 8441 needs none, a server behind HTTP/1.1 does.
        "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
      },
      { endStream: false },
    );
    const [headers] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
    const status = Number(headers[":status"]);
    if (status !== 200) throw new Error(`not accepted: ${status}`);
    return stream;
  }

  async close(): Promise<void> {
    const closed = once(this.#session, "close");
    this.#session.close();
    await closed;
  }
}
