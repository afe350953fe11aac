import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { pause } from "./until.ts";

export interface Shot {
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

export interface Reply {
  readonly shot: Shot;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly startedAtMs: number;
  readonly tookMs: number;
}

export interface Miss {
  readonly shot: Shot;
  readonly error: string;
  readonly startedAtMs: number;
}

/** One request to 127.0.0.1:`port`. Rejects when the connection fails or ends early. */
export async function fire(port: number, shot: Shot, agent?: Agent): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const startedAtMs = performance.now();
  const outgoing = request(
    {
      host: "127.0.0.1",
      port,
      path: shot.path,
      method: shot.method ?? "GET",
      headers: shot.headers ?? {},
      ...(agent === undefined ? {} : { agent }),
      timeout: 60_000,
    },
    (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", reject);
      incoming.on("aborted", () => {
        reject(new Error("answer cut"));
      });
      incoming.on("end", () => {
        resolve({
          shot,
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          body: Buffer.concat(chunks).toString("utf8"),
          startedAtMs,
          tookMs: performance.now() - startedAtMs,
        });
      });
    },
  );
  outgoing.on("error", reject);
  outgoing.on("timeout", () => outgoing.destroy(new Error("no answer in 60 s")));
  outgoing.end(shot.body);
  return promise;
}

/**
 * An open-loop load: a request every 1/`ratePerSecond` seconds whether or not earlier ones were
 * answered, over kept-alive connections, until `stop`. Judges each answer by `isGood`.
 */
export class OpenLoop {
  readonly bad: (Reply | Miss)[] = [];
  sent = 0;
  good = 0;
  tookMs: number[] = [];
  #stopped = false;
  #inFlight = new Set<Promise<void>>();
  #agent = new Agent({ keepAlive: true, maxSockets: 256 });
  #loop: Promise<void>;

  constructor(options: {
    port: number;
    ratePerSecond: number;
    next: (index: number) => Shot;
    isGood: (reply: Reply) => boolean;
  }) {
    this.#loop = this.#run(options);
  }

  /** Stops sending and waits for all answers. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop;
    await Promise.all(this.#inFlight);
    this.#agent.destroy();
  }

  async #run(options: ConstructorParameters<typeof OpenLoop>[0]): Promise<void> {
    const startedAt = performance.now();
    while (!this.#stopped) {
      const due = Math.floor(((performance.now() - startedAt) / 1_000) * options.ratePerSecond);
      for (; this.sent < due; this.sent += 1) this.#send(options, this.sent);
      await pause(2);
    }
  }

  #send(options: ConstructorParameters<typeof OpenLoop>[0], index: number): void {
    const shot = options.next(index);
    const startedAtMs = performance.now();
    const flight = fire(options.port, shot, this.#agent)
      .then((reply) => {
        this.tookMs.push(reply.tookMs);
        if (options.isGood(reply)) this.good += 1;
        else if (this.bad.length < 1_000) this.bad.push(reply);
      })
      .catch((error: unknown) => {
        if (this.bad.length < 1_000) this.bad.push({ shot, error: String(error), startedAtMs });
      })
      .finally(() => this.#inFlight.delete(flight));
    this.#inFlight.add(flight);
  }
}
