import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Child, freePorts, runTypeScript, until } from "@belay/testkit";
import type { Variant } from "../load/interleaved.ts";
import { BESIDE_KEYS_MAX, FILL_CONNECTIONS, requestEachKey } from "../load/wrk.ts";
import { pinProxy } from "../machine/process-facts.ts";
import type { Tools } from "../machine/tools.ts";
import { createRivalsConfig, type RivalPorts } from "./envoy-config.ts";
import { createHaproxyConfig } from "./haproxy-config.ts";

const UPSTREAMS = 3;
/** One Lua table of a million keys per thread takes seconds to make. */
const START_MS_MAX = 120_000;
const FILL_SECONDS_MAX = 180;

export interface RivalsInput {
  readonly tools: Tools;
  readonly keys: number;
  /** Which there must be; B2 and B3 need only the plain and the empty one. */
  readonly which: "all" | "plain and empty";
}

/** What Belay is measured beside: one Envoy with a listener a rival, and HAProxy if there is one. */
export class Rivals {
  readonly #input: RivalsInput;
  readonly #folder = mkdtempSync(join(tmpdir(), "belay-bench-"));
  readonly #children: Child[] = [];
  #upstreamPorts: number[] = [];
  #ports: RivalPorts = {
    admin: 0,
    plain: 0,
    empty: 0,
    session: 0,
    ringHash: 0,
    lua: 0,
    extProc: 0,
  };
  #envoy = 0;
  #extProc: Child | undefined;
  #haproxy: { readonly child: Child; readonly port: number } | undefined;

  private constructor(input: RivalsInput) {
    this.#input = input;
  }

  static async start(input: RivalsInput): Promise<Rivals> {
    const rivals = new Rivals(input);
    try {
      await rivals.#start();
    } catch (error) {
      await rivals.stop();
      throw error;
    }
    return rivals;
  }

  get envoyPid(): number {
    return this.#envoy;
  }

  get adminPort(): number {
    return this.#ports.admin;
  }

  get plainPort(): number {
    return this.#ports.plain;
  }

  /** Plain first. */
  pathVariants(): Variant[] {
    const { plain, empty, session, ringHash, lua, extProc } = this.#ports;
    const pid = this.#envoy;
    const tokens = this.#owners().map((it) => Buffer.from(it).toString("base64"));
    const variants: Variant[] = [
      { name: "plain Envoy, round robin, prefix rewrite", port: plain, kind: "path", pid },
      { name: "empty module", port: empty, kind: "path", pid },
      { name: "Envoy's stateful_session, header", port: session, kind: "session", pid, tokens },
      { name: "Envoy's ring hash by header", port: ringHash, kind: "header", pid },
      { name: "Lua filter, same logic", port: lua, kind: "path", pid },
      {
        name: "ext_proc, Node",
        port: extProc,
        kind: "path",
        pid,
        ...(this.#extProc === undefined ? {} : { helperPid: this.#extProc.pid }),
      },
    ];
    const haproxy = this.#haproxy;
    if (haproxy === undefined) return variants;
    const { port, child } = haproxy;
    return [...variants, { name: "HAProxy, stick table", port, kind: "path", pid: child.pid }];
  }

  /** Plain first. */
  postVariants(): Variant[] {
    const { plain, empty } = this.#ports;
    const pid = this.#envoy;
    return [
      { name: "plain Envoy, POST", port: plain, kind: "envelope", pid },
      { name: "empty module, POST", port: empty, kind: "envelope", pid },
    ];
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.stop(2000)));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #owners(): string[] {
    return this.#upstreamPorts.map((port) => `127.0.0.1:${port}`);
  }

  #spawn(name: string, command: readonly string[]): Child {
    const child = new Child(name, command);
    this.#children.push(child);
    return child;
  }

  #write(name: string, text: string): string {
    const file = join(this.#folder, name);
    writeFileSync(file, text);
    return file;
  }

  async #start(): Promise<void> {
    const { tools, which } = this.#input;
    const free = await freePorts(UPSTREAMS + 9);
    const next = (): number => free.shift() ?? 0;
    this.#upstreamPorts = Array.from({ length: UPSTREAMS }, next);
    this.#ports = {
      admin: next(),
      plain: next(),
      empty: next(),
      session: next(),
      ringHash: next(),
      lua: next(),
      extProc: next(),
    };
    const [extProcPort, haproxyPort] = [next(), next()];
    const upstream = this.#spawn("upstream", [tools.upstream, ...this.#upstreamPorts.map(String)]);
    await upstream.printed(/ready/);
    if (which === "all") {
      const keys = String(this.#input.keys);
      const program = join(import.meta.dirname, "ext-proc-server.ts");
      const command = [...runTypeScript, program, String(extProcPort), keys, ...this.#owners()];
      this.#extProc = this.#spawn("ext-proc", command);
      await this.#extProc.printed(/ready/, START_MS_MAX);
      if (tools.haproxy !== undefined) await this.#startHaproxy(tools.haproxy, haproxyPort);
    }
    await this.#startEnvoy(extProcPort);
  }

  async #startEnvoy(extProcPort: number): Promise<void> {
    const { tools, keys, which } = this.#input;
    const owners = this.#owners().map((it) => JSON.stringify(it));
    const program = readFileSync(join(import.meta.dirname, "owner.lua"), "utf8");
    const luaKeys = which === "all" ? keys : 1;
    const head = `local KEYS, OWNERS = ${luaKeys}, {${owners.join(", ")}}\n`;
    const config = createRivalsConfig({
      ports: this.#ports,
      upstreamPorts: this.#upstreamPorts,
      emptyModule: tools.emptyModule,
      luaFile: this.#write("owner.lua", head + program),
      extProcPort,
    });
    const file = this.#write("envoy.json", JSON.stringify(config, null, 1));
    const flags = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"];
    const child = this.#spawn("rivals' Envoy", [tools.envoy, "-c", file, ...flags]);
    this.#envoy = child.pid;
    await until(
      "the rivals' Envoy is ready or ended",
      async () =>
        !child.running ||
        (await fetch(`http://127.0.0.1:${this.#ports.admin}/ready`)).status === 200,
      START_MS_MAX,
    );
    if (!child.running) throw new Error(`the rivals' Envoy ended:\n${child.output.slice(-4000)}`);
    pinProxy(child.pid);
    const fill = { port: this.#ports.plain, connections: FILL_CONNECTIONS };
    await requestEachKey({ ...fill, keys: Math.min(keys, BESIDE_KEYS_MAX) }, FILL_SECONDS_MAX);
  }

  async #startHaproxy(program: string, port: number): Promise<void> {
    const { keys } = this.#input;
    const file = this.#write("haproxy.cfg", createHaproxyConfig(port, this.#upstreamPorts, keys));
    const child = this.#spawn("haproxy", [program, "-db", "-f", file]);
    this.#haproxy = { child, port };
    await until(
      "HAProxy serves or ended",
      async () => !child.running || (await fetch(`http://127.0.0.1:${port}/s/key/`)).status === 200,
    );
    if (!child.running) throw new Error(`HAProxy ended:\n${child.output.slice(-4000)}`);
    pinProxy(child.pid);
    await requestEachKey({ port, keys, connections: 64 }, FILL_SECONDS_MAX);
  }
}
