import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http, { type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Child, envoyBinary, freePorts, moduleFile, until } from "@belay/testkit";
import { WebSocket } from "ws";
import { envoyConfig, type TestEdge, type TestService } from "./envoy-config.ts";
import type { FakeServer, Seen } from "./fake-server.ts";
import {
  ScriptedCoordinator,
  type ScriptedServer,
  type ScriptedService,
} from "./scripted-coordinator.ts";

export interface EdgeOptions extends Partial<
  Pick<TestEdge, "maxWaitMs" | "accessLog" | "keyInLogs">
> {
  readonly services: readonly (ScriptedService &
    Pick<TestService, "routes" | "http2"> & {
      readonly servers: readonly FakeServer[];
      /** Endpoints beyond the servers', for those that come later. */
      readonly spare?: readonly string[];
    })[];
  /** Do not register and wait until it is open. */
  readonly cold?: boolean;
  /** The coordinator sends no snapshot until `mute` is false. */
  readonly mute?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly trailers: NodeJS.Dict<string>;
  readonly body: string;
  readonly ms: number;
  seen(): Seen;
}

export interface Ask {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: Buffer | string;
  readonly trailers?: Readonly<Record<string, string>>;
  readonly agent?: http.Agent;
}

/** A real Envoy with the module, small servers behind it, and a coordinator that does what it is told. */
export class EdgeUnderTest {
  readonly coordinator: ScriptedCoordinator;
  readonly registered = new Map<string, ScriptedServer>();
  readonly envoy: Child;
  readonly port: number;
  readonly adminPort: number;
  readonly #folder: string;
  readonly #servers: readonly FakeServer[];

  private constructor(
    coordinator: ScriptedCoordinator,
    running: {
      envoy: Child;
      port: number;
      adminPort: number;
      folder: string;
      servers: readonly FakeServer[];
    },
  ) {
    this.coordinator = coordinator;
    this.envoy = running.envoy;
    this.port = running.port;
    this.adminPort = running.adminPort;
    this.#folder = running.folder;
    this.#servers = running.servers;
  }

  static async start(options: EdgeOptions): Promise<EdgeUnderTest> {
    const coordinator = new ScriptedCoordinator();
    coordinator.mute = options.mute ?? false;
    const coordinatorPort = await coordinator.listen();
    const [port, adminPort] = (await freePorts(2)) as [number, number];
    const servers = options.services.flatMap((service) => service.servers);
    await Promise.all(servers.map((server) => server.listen()));
    const config = envoyConfig({
      ...options,
      module: moduleFile,
      edgePort: port,
      adminPort,
      coordinator: `127.0.0.1:${coordinatorPort}`,
      services: options.services.map((service) => ({
        ...service,
        endpoints: [...service.servers.map((server) => server.address), ...(service.spare ?? [])],
      })),
    });
    const folder = await mkdtemp(join(tmpdir(), "belay-module-"));
    const file = join(folder, "envoy.json");
    await writeFile(file, JSON.stringify(config, undefined, 1));
    const command = [
      envoyBinary,
      "-c",
      file,
      "--concurrency",
      "2",
      "-l",
      "warning",
      "--base-id",
      String(port),
    ];
    const level = ["--component-log-level", "dynamic_modules:info"];
    const envoy = new Child("envoy", [
      ...command,
      ...level,
      "--drain-time-s",
      "1",
      "--file-flush-interval-msec",
      "100",
    ]);
    const edge = new EdgeUnderTest(coordinator, { envoy, port, adminPort, folder, servers });
    if (options.cold !== true) await edge.#open(options);
    return edge;
  }

  async #open(options: EdgeOptions): Promise<void> {
    this.registerAll(options);
    await this.ready();
  }

  /** Defines all services and registers all their servers. */
  registerAll(options: EdgeOptions): void {
    for (const {
      servers,
      routes: _routes,
      spare: _spare,
      http2: _http2,
      ...service
    } of options.services) {
      this.coordinator.define(service);
      for (const server of servers) this.register(service.name, server);
    }
  }

  register(service: string, server: FakeServer): ScriptedServer {
    const registered = this.coordinator.register(service, server.name, server.address);
    server.incarnation = registered.incarnation;
    this.registered.set(server.name, registered);
    return registered;
  }

  server(name: string): ScriptedServer {
    const found = this.registered.get(name);
    if (found === undefined) throw new Error(`no server ${name}`);
    return found;
  }

  async ready(): Promise<void> {
    await until("Envoy is ready", async () => {
      if (!this.envoy.running) throw new Error(`Envoy ended: ${this.envoy.output}`);
      return (await fetch(`http://127.0.0.1:${this.adminPort}/ready`)).ok;
    });
  }

  async ask(path: string, ask: Ask = {}): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const began = performance.now();
    const request = http.request({
      host: "127.0.0.1",
      port: this.port,
      path,
      method: ask.method ?? (ask.body === undefined ? "GET" : "POST"),
      headers: { ...ask.headers },
      ...(ask.agent === undefined ? {} : { agent: ask.agent }),
    });
    request.on("error", reject);
    request.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const body = Buffer.concat(chunks).toString();
        const { statusCode: status = 0, headers, trailers } = response;
        const ms = performance.now() - began;
        resolve({ status, headers, trailers, body, ms, seen: () => JSON.parse(body) as Seen });
      });
    });
    if (ask.trailers !== undefined) request.addTrailers(ask.trailers);
    request.end(ask.body);
    return promise;
  }

  /** Opens a WebSocket; answers its status instead if it was refused. */
  async socket(path: string, headers: Record<string, string> = {}): Promise<TestSocket> {
    const socket = new TestSocket(`ws://127.0.0.1:${this.port}${path}`, headers);
    await socket.opened;
    return socket;
  }

  /** A counter or gauge of the admin's Prometheus page, 0 if it is not there. */
  async metric(name: string, labels = ""): Promise<number> {
    const text = await (await fetch(`http://127.0.0.1:${this.adminPort}/stats/prometheus`)).text();
    const named = text.split("\n").filter((one) => one.includes(name) && !one.startsWith("#"));
    const line = named.find((one) => one.includes(labels));
    return line === undefined ? 0 : Number(line.slice(line.lastIndexOf(" ") + 1));
  }

  /** How many requests of a service had this outcome. */
  async requests(service: string, outcome: string): Promise<number> {
    return this.metric("belay_requests", `service="${service}",outcome="${outcome}"`);
  }

  async stop(): Promise<void> {
    const code = await this.envoy.stop();
    await this.coordinator.close();
    await Promise.all(this.#servers.map(async (server) => server.close()));
    await rm(this.#folder, { recursive: true });
    if (code !== 0) throw new Error(`Envoy ended with ${code}:\n${this.envoy.output}`);
    if (/panic/i.test(this.envoy.output)) throw new Error(`a panic:\n${this.envoy.output}`);
  }
}

/** A client's WebSocket that keeps what happens to it. */
export class TestSocket {
  readonly socket: WebSocket;
  readonly messages: string[] = [];
  closed: { code: number; reason: string } | undefined;
  refused: { status: number; headers: IncomingHttpHeaders } | undefined;
  readonly opened: Promise<void>;

  constructor(url: string, headers: Record<string, string>) {
    this.socket = new WebSocket(url, { headers, perMessageDeflate: false });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.opened = promise;
    this.socket.on("open", resolve);
    this.socket.on("unexpected-response", (_request, response) => {
      this.refused = { status: response.statusCode ?? 0, headers: response.headers };
      response.destroy();
      resolve();
    });
    this.socket.on("error", (error) => {
      if (this.refused === undefined) reject(error);
    });
    this.socket.on("message", (data: Buffer) => this.messages.push(data.toString()));
    this.socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() };
    });
  }

  /** Sends and waits for the next message. */
  async ask(text: string): Promise<string> {
    const at = this.messages.length;
    this.socket.send(text);
    return until("an answer on the socket", () => this.messages[at]);
  }

  async end(): Promise<{ code: number; reason: string }> {
    return until("the socket closes", () => this.closed);
  }
}
