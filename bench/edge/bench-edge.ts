import { BelayUnderTest, type Child, freePorts, runTypeScript, until } from "@belay/testkit";
import { join } from "node:path";
import { findDescendant, pinProxy } from "../machine/process-facts.ts";
import type { Tools } from "../machine/tools.ts";

const SERVERS = ["a", "b", "c"] as const;
const START_MS_MAX = 60_000;

/** `guarded`: servers with the SDK; else the bench's own upstream under `belay run`. */
export type ServerKind = "unguarded" | "guarded";

const yamlOf = (kind: ServerKind): string => `
service: bench
key:
  - path: /s/{key}/**
  - envelope: { field: 12, marker: belay1, use: player }
ownership: { guard: ${kind === "guarded" ? "sdk" : "none"} }
`;

/** The host of a second service, guarded, whose servers answer without looking: for the edge's cost alone. */
export const GUARDED_HOST = "guarded.localhost";

const guardedYaml = `
service: guarded
hosts: [${GUARDED_HOST}]
key: [{ path: "/s/{key}/**" }]
ownership: { guard: sdk }
`;

/** One Envoy of Belay's. */
export interface EnvoyUnderBench {
  readonly port: number;
  readonly adminPort: number;
  readonly pid: number;
}

/** A whole Belay, as `belay core`, `belay proxy` and `belay run` make it, with three servers. */
export class BenchEdge {
  readonly belay: BelayUnderTest;
  #envoy: EnvoyUnderBench = { port: 0, adminPort: 0, pid: 0 };

  private constructor(belay: BelayUnderTest) {
    this.belay = belay;
  }

  /** `isPinned`: one worker, on the proxy's core, and a guarded service beside; else as `belay proxy` starts by itself. */
  static async start(
    tools: Tools,
    options: { readonly isPinned: boolean; readonly servers?: ServerKind },
  ): Promise<BenchEdge> {
    const { isPinned, servers = "unguarded" } = options;
    const yaml = { bench: yamlOf(servers), ...(isPinned ? { guarded: guardedYaml } : {}) };
    const belay = await BelayUnderTest.create(yaml);
    const edge = new BenchEdge(belay);
    try {
      belay.startCoordinator();
      belay.startControlPlane();
      const { edge: port, envoyAdmin: adminPort } = belay.ports;
      edge.#envoy = await edge.#startProxy(isPinned, { port, adminPort });
      for (const id of SERVERS) await edge.#startServer(id, servers, tools);
      if (isPinned) await edge.#startGuarded(tools);
      await until("the servers are registered", async () => edge.#areActive(), START_MS_MAX);
      return edge;
    } catch (error) {
      await belay.stop();
      throw error;
    }
  }

  get port(): number {
    return this.#envoy.port;
  }

  get adminPort(): number {
    return this.#envoy.adminPort;
  }

  get envoyPid(): number {
    return this.#envoy.pid;
  }

  /** A second edge like the first, but in small pages. */
  async startInSmallPages(): Promise<EnvoyUnderBench> {
    const [port = 0, adminPort = 0] = await freePorts(2);
    return this.#startProxy(true, { port, adminPort }, { BELAY_HUGE_PAGES: "off" });
  }

  /** A metric of the module, by its name without prefix. */
  async metric(name: string): Promise<number> {
    return this.belay.metric(`envoy_belay_${name}`);
  }

  async stop(): Promise<void> {
    await this.belay.stop();
  }

  async #startProxy(
    isPinned: boolean,
    ports: { readonly port: number; readonly adminPort: number },
    more: Record<string, string> = {},
  ): Promise<EnvoyUnderBench> {
    const { belay } = this;
    const { port, adminPort } = ports;
    const concurrency = isPinned ? ["--concurrency", "1"] : [];
    const env = {
      BELAY_EDGE_PORT: String(port),
      BELAY_ENVOY_ADMIN_PORT: String(adminPort),
      BELAY_METRICS_PORT: "0",
      ...more,
    };
    const flags = [...concurrency, "--drain-time", "100ms"];
    const child = belay.belay(`edge-${port}`, ["proxy", ...flags], { env });
    await until(
      "the edge is ready or ended",
      async () =>
        !child.running || (await fetch(`http://127.0.0.1:${adminPort}/ready`)).status === 200,
      START_MS_MAX,
    );
    if (!child.running) throw new Error(`the edge ended:\n${child.output.slice(-4000)}`);
    const pid = findDescendant(child.pid, "envoy");
    if (isPinned) pinProxy(pid);
    return { ...ports, pid };
  }

  async #startServer(id: string, kind: ServerKind, tools: Tools): Promise<Child> {
    if (kind === "guarded") {
      const [port = 0] = await freePorts(1);
      const program = join(import.meta.dirname, "guarded-server.ts");
      return this.belay.spawn(id, [...runTypeScript, program, id, String(port)]);
    }
    const command = ["sh", "-c", `exec '${tools.upstream}' "$PORT"`];
    const flags = ["--service", "bench", "--id", id, "--port", "auto"];
    return this.belay.belay(id, ["run", ...flags, "--", ...command]);
  }

  async #startGuarded(tools: Tools): Promise<void> {
    const ports = (await freePorts(SERVERS.length)).map(String);
    await this.belay.spawn("guarded upstream", [tools.upstream, ...ports]).printed(/ready/);
    const program = join(import.meta.dirname, "registrar.ts");
    await this.belay.spawn("registrar", [...runTypeScript, program, ...ports]).printed(/ready/);
    await until("the guarded servers are reachable", async () => {
      const headers = { host: GUARDED_HOST };
      return (await this.belay.get({ path: "/s/probe/", headers })).status === 200;
    });
  }

  async #areActive(): Promise<boolean> {
    const { servers } = (await this.belay.api("/v1/servers")) as {
      servers: readonly { service: string; state: string }[];
    };
    const active = servers.filter((it) => it.service === "bench" && it.state === "active").length;
    if (active < SERVERS.length) return false;
    return (await this.belay.get({ path: "/s/probe/" })).status === 200;
  }
}
