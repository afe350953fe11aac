import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Child, envoyBinary, fire, freePorts, moduleFile, type Reply, until } from "@belay/testkit";
import type { ModuleLocation } from "@belay/xds";
import { toBootstrap } from "@belay/xds/bootstrap";

const moduleFolder = dirname(moduleFile);

/** For `test`'s options: false, or why it cannot run here. */
export const needsEnvoy: string | false = existsSync(envoyBinary)
  ? false
  : "not run: needs Envoy 1.40.0 (BELAY_ENVOY)";
export const needsModule: string | false =
  needsEnvoy ||
  (existsSync(moduleFile)
    ? false
    : "not run: needs native/target/release/libbelay.so (cargo build --release)");

/** Runs `envoy --mode validate` on a configuration; answers what it complains of, or "". */
export const validate = async (config: unknown): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), "belay-xds-"));
  const file = join(folder, "envoy.json");
  writeFileSync(file, JSON.stringify(config));
  const child = new Child(
    "envoy --mode validate",
    [envoyBinary, "--mode", "validate", "-c", file, "-l", "error"],
    { env: { ENVOY_DYNAMIC_MODULES_SEARCH_PATH: moduleFolder } },
  );
  const code = await child.exited();
  rmSync(folder, { recursive: true });
  return code === 0 ? "" : child.output;
};

/** A real Envoy with the bootstrap of `belay proxy`, fed by the control plane at a port. */
export class EnvoyUnderTest {
  readonly port: number;
  readonly #adminPort: number;
  readonly #folder: string;
  readonly #child: Child;

  private constructor(ports: readonly number[], folder: string, child: Child) {
    const [port = 0, adminPort = 0] = ports;
    this.port = port;
    this.#adminPort = adminPort;
    this.#folder = folder;
    this.#child = child;
  }

  static async start(options: {
    readonly xdsPort: number;
    readonly name?: string;
    readonly pool?: string;
    readonly module?: ModuleLocation;
    readonly coordinatorPort?: number;
  }): Promise<EnvoyUnderTest> {
    const ports = await freePorts(2);
    const [port = 0, adminPort = 0] = ports;
    const at = (number: number) => ({ address: "127.0.0.1", port: number });
    const folder = mkdtempSync(join(tmpdir(), "belay-xds-"));
    const bootstrap = toBootstrap({
      name: options.name ?? "edge-1",
      pool: options.pool ?? "edge",
      edge: at(port),
      admin: at(adminPort),
      controlPlane: at(options.xdsPort),
      module: options.module ?? null,
      coordinator: at(options.coordinatorPort ?? 1),
      maxWaitMs: 1000,
      hugePages: false,
      connectionsMax: 2000,
    });
    writeFileSync(join(folder, "envoy.json"), JSON.stringify(bootstrap));
    const flags = [
      "--use-dynamic-base-id",
      "--concurrency",
      "2",
      "-l",
      "warn",
      "--file-flush-interval-msec",
      "100",
    ];
    const child = new Child("envoy", [envoyBinary, "-c", join(folder, "envoy.json"), ...flags], {
      env: { ENVOY_DYNAMIC_MODULES_SEARCH_PATH: moduleFolder },
    });
    return new EnvoyUnderTest(ports, folder, child);
  }

  get output(): string {
    return this.#child.output;
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Reply> {
    return fire(this.port, { path, headers });
  }

  async admin(path: string): Promise<string> {
    return (await fire(this.#adminPort, { path })).body;
  }

  /** A counter or gauge of `/stats`; 0 when Envoy does not show it. */
  async stat(name: string): Promise<number> {
    const text = await this.admin(`/stats?filter=^${name.replaceAll(".", String.raw`\.`)}$`);
    return Number(/: (\d+)/.exec(text)?.[1] ?? 0);
  }

  /** Waits until a request is answered with this status. */
  async answers(status: number, path = "/"): Promise<Reply> {
    return until(`envoy answers ${status} on ${path}:\n${this.output}`, async () => {
      const reply = await this.get(path);
      return reply.status === status ? reply : undefined;
    });
  }

  async stop(): Promise<void> {
    await this.#child.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** An HTTP server behind the edge, in the test's own process. */
export class Upstream {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(listener: RequestListener): Promise<Upstream> {
    const server = createServer(listener);
    const { promise, resolve } = Promise.withResolvers<void>();
    server.listen(0, "127.0.0.1", () => resolve());
    await promise;
    return new Upstream(server);
  }

  get server(): Server {
    return this.#server;
  }

  get address(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("no TCP address");
    return `127.0.0.1:${address.port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const program = `
  const [label] = process.argv.slice(1);
  const server = require("node:http").createServer((_, response) => response.end(label));
  server.listen(0, "127.0.0.1", () => console.log("listens on " + server.address().port + "."));
`;

/**
 * A server in a process of its own: Node accepts a few connections per turn of its loop, so one that
 * shares it with the load and the control plane would starve on a busy machine.
 */
export class ServerProcess {
  readonly address: string;
  readonly #child: Child;

  private constructor(address: string, child: Child) {
    this.address = address;
    this.#child = child;
  }

  /** Answers `label` to everything. */
  static async start(label: string): Promise<ServerProcess> {
    const child = new Child(`server ${label}`, [process.execPath, "-e", program, label]);
    const [, port] = await child.printed(/listens on (\d+)\./);
    return new ServerProcess(`127.0.0.1:${port}`, child);
  }

  async stop(): Promise<void> {
    await this.#child.stop();
  }
}
