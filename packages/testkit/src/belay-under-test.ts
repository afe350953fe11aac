import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Child, type ChildOptions } from "./child.ts";
import { freePorts } from "./free-port.ts";
import { fire, type Reply, type Shot } from "./open-loop.ts";
import { until } from "./until.ts";

const root = resolve(import.meta.dirname, "../../..");

/** The pinned Node of this checkout. */
export const node = process.execPath;
/** Arguments that run a TypeScript file of this checkout. */
export const runTypeScript: readonly string[] = [node, "--conditions=belay-source"];

interface Ports {
  readonly edge: number;
  readonly api: number;
  readonly coordinator: number;
  readonly xds: number;
  readonly envoyAdmin: number;
}

/**
 * A whole Belay of real processes on free ports of loopback, in a data folder of its own:
 * coordinator, control plane, one or more edges. `stop` ends all of them and removes the folder.
 */
export class BelayUnderTest {
  readonly data: string;
  readonly services: string;
  readonly ports: Ports;
  readonly children: Child[] = [];
  coordinator: Child | undefined;
  controlPlane: Child | undefined;
  edges: { child: Child; port: number; adminPort: number }[] = [];

  private constructor(data: string, ports: Ports) {
    this.data = data;
    this.services = join(data, "services");
    this.ports = ports;
  }

  static async create(services: Readonly<Record<string, string>>): Promise<BelayUnderTest> {
    const [edge, api, coordinator, xds, envoyAdmin] = await freePorts(5);
    if (!edge || !api || !coordinator || !xds || !envoyAdmin) throw new Error("no free ports");
    const data = mkdtempSync(join(tmpdir(), "belay-test-"));
    const belay = new BelayUnderTest(data, { edge, api, coordinator, xds, envoyAdmin });
    mkdirSync(belay.services, { recursive: true });
    for (const [name, yaml] of Object.entries(services)) belay.writeService(name, yaml);
    return belay;
  }

  /** Coordinator, control plane and one edge, ready to route. */
  static async start(services: Readonly<Record<string, string>>): Promise<BelayUnderTest> {
    const belay = await BelayUnderTest.create(services);
    try {
      belay.startCoordinator();
      belay.startControlPlane();
      await belay.startEdge();
    } catch (error) {
      await belay.stop();
      throw error;
    }
    return belay;
  }

  get env(): Record<string, string> {
    return {
      BELAY_DATA: this.data,
      BELAY_EDGE_PORT: String(this.ports.edge),
      BELAY_API_PORT: String(this.ports.api),
      BELAY_COORDINATOR_PORT: String(this.ports.coordinator),
      BELAY_XDS_PORT: String(this.ports.xds),
      BELAY_ENVOY_ADMIN_PORT: String(this.ports.envoyAdmin),
      BELAY_API: `http://127.0.0.1:${this.ports.api}`,
      BELAY_COORDINATOR: `127.0.0.1:${this.ports.coordinator}`,
      NO_COLOR: "1",
    };
  }

  writeService(name: string, yaml: string): void {
    writeFileSync(join(this.services, `${name}.yaml`), yaml);
  }

  /** Runs `belay ARGS` in the background. */
  belay(name: string, args: readonly string[], options: ChildOptions = {}): Child {
    const main = join(root, "packages/belay/src/cli/main.ts");
    return this.spawn(name, [...runTypeScript, main, ...args], options);
  }

  /** Runs `belay ARGS` to its end; answers its output. Fails on another exit code than `code`. */
  async ask(args: readonly string[], code = 0): Promise<string> {
    const child = this.belay(args.join(" "), args);
    const exit = await child.exited();
    if (exit !== code) throw new Error(`belay ${args.join(" ")}: exit ${exit}\n${child.output}`);
    return child.output;
  }

  spawn(name: string, command: readonly string[], options: ChildOptions = {}): Child {
    const child = new Child(name, command, { ...options, env: { ...this.env, ...options.env } });
    this.children.push(child);
    return child;
  }

  startCoordinator(): Child {
    this.coordinator = this.belay("coordinator", ["core", "--roles", "coordinator"]);
    return this.coordinator;
  }

  startControlPlane(): Child {
    this.controlPlane = this.belay("control-plane", [
      "core",
      "--roles",
      "control-plane",
      "--services",
      this.services,
    ]);
    return this.controlPlane;
  }

  /** One more edge; waits until it is ready unless told otherwise. */
  async startEdge(options: { wait?: boolean; env?: Record<string, string> } = {}): Promise<number> {
    const first = this.edges.length === 0;
    const [port, adminPort] = first ? [this.ports.edge, this.ports.envoyAdmin] : await freePorts(2);
    if (!port || !adminPort) throw new Error("no free port");
    const child = this.belay(`edge-${this.edges.length}`, ["proxy"], {
      env: {
        BELAY_EDGE_PORT: String(port),
        BELAY_ENVOY_ADMIN_PORT: String(adminPort),
        ...options.env,
      },
    });
    this.edges.push({ child, port, adminPort });
    if (options.wait !== false) {
      await until(
        "the edge is ready or ended",
        async () => {
          if (!child.running) return true;
          return (await fetch(`http://127.0.0.1:${adminPort}/ready`)).status === 200;
        },
        30_000,
      ).catch((error: unknown) => {
        throw new Error(`the edge is not ready:\n${this.#lastWords()}`, { cause: error });
      });
      if (!child.running) throw new Error(`the edge ended:\n${this.#lastWords()}`);
    }
    return port;
  }

  /** The end of what each process printed, for a failure's message. */
  #lastWords(): string {
    return this.children
      .map(({ name, output }) => `--- ${name}\n${output.slice(-2_000)}`)
      .join("\n");
  }

  async get(shot: Shot, port = this.ports.edge): Promise<Reply> {
    return fire(port, shot);
  }

  /** The admin API's answer to a GET. */
  async api(path: string): Promise<unknown> {
    return (await fetch(`http://127.0.0.1:${this.ports.api}${path}`)).json();
  }

  /** One counter or gauge of the first edge, summed over label sets that contain `labels`. */
  async metric(name: string, labels = "", edge = 0): Promise<number> {
    const adminPort = this.edges[edge]?.adminPort ?? this.ports.envoyAdmin;
    const text = await (await fetch(`http://127.0.0.1:${adminPort}/stats/prometheus`)).text();
    let sum = 0;
    for (const line of text.split("\n")) {
      if (line.startsWith(name) && /^[{ ]/.test(line.slice(name.length)) && line.includes(labels)) {
        sum += Number(line.slice(line.lastIndexOf(" ")));
      }
    }
    return sum;
  }

  async stop(): Promise<void> {
    const order = this.children.toReversed();
    for (const child of order) child.signal("SIGCONT");
    await Promise.all(order.map((child) => child.stop(10_000)));
    rmSync(this.data, { recursive: true, force: true });
  }
}
