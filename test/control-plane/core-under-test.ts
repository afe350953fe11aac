import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ControlPlane, createControlPlane } from "@belay/control-plane";
import type { LogFields, Logger } from "@belay/model";
import { createBootClock, createSystemRandom } from "@belay/protocol";
import { type RunningAdminApi, startAdminApi } from "../../packages/belay/src/admin/admin-api.ts";
import { DeltaClient } from "./delta-client.ts";

export interface CoreOptions {
  readonly coordinatorPort: number;
  readonly files?: Readonly<Record<string, string>>;
  /** True: `files` go to a folder of the user's. */
  readonly ownFolder?: boolean;
  readonly token?: string;
}

export interface ApiReply {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers: Headers;
}

/** A control plane with its admin API in this process, and a data folder that outlives a restart. */
export class CoreUnderTest {
  readonly data = mkdtempSync(join(tmpdir(), "belay-control-plane-"));
  readonly services: string;
  readonly lines: { level: string; fields: LogFields; message: string }[] = [];
  plane: ControlPlane;
  api: RunningAdminApi | undefined;
  readonly #options: CoreOptions;
  readonly #clients: DeltaClient[] = [];

  private constructor(options: CoreOptions) {
    this.#options = options;
    this.services = join(this.data, options.ownFolder === true ? "mine" : "services");
    mkdirSync(this.services, { recursive: true });
    for (const [name, text] of Object.entries(options.files ?? {})) this.write(name, text);
    this.plane = this.#create();
  }

  static async start(options: CoreOptions): Promise<CoreUnderTest> {
    const core = new CoreUnderTest(options);
    try {
      await core.#open();
    } catch (error) {
      await core.stop();
      throw error;
    }
    return core;
  }

  /** Puts a file into the folder as careful editors do: by a rename. */
  write(name: string, text: string): void {
    const path = join(this.services, name);
    writeFileSync(`${path}.tmp`, text);
    renameSync(`${path}.tmp`, path);
  }

  proxy(name = "edge-1"): DeltaClient {
    const client = new DeltaClient(this.plane.xdsPort, name);
    this.#clients.push(client);
    return client;
  }

  get url(): string {
    return `http://127.0.0.1:${this.api?.port ?? 0}`;
  }

  async call(method: string, path: string, body?: unknown): Promise<ApiReply> {
    const json = { "content-type": "application/json" };
    const init = body === undefined ? {} : { headers: json, body: JSON.stringify(body) };
    return this.fetch(path, { method, ...init });
  }

  async fetch(path: string, init: RequestInit): Promise<ApiReply> {
    const response = await fetch(`${this.url}${path}`, init);
    const text = await response.text();
    const parsed: unknown = text.startsWith("{") ? JSON.parse(text) : { text };
    return { status: response.status, body: Object(parsed), headers: response.headers };
  }

  async restart(): Promise<void> {
    await this.#close();
    this.plane = this.#create();
    await this.#open();
  }

  async stop(): Promise<void> {
    await this.#close();
    rmSync(this.data, { recursive: true, force: true });
  }

  async #open(): Promise<void> {
    await this.plane.start();
    const { token } = this.#options;
    this.api = await startAdminApi({
      controlPlane: this.plane,
      host: "127.0.0.1",
      port: 0,
      ...(token === undefined ? {} : { token }),
      version: "0.1.0",
      logger: this.#logger(),
    });
  }

  async #close(): Promise<void> {
    for (const client of this.#clients.splice(0)) client.close();
    await this.api?.close();
    this.api = undefined;
    await this.plane.stop();
  }

  #create(): ControlPlane {
    return createControlPlane({
      data: this.data,
      ...(this.#options.ownFolder === true ? { services: this.services } : {}),
      coordinator: { host: "127.0.0.1", port: this.#options.coordinatorPort },
      xds: { host: "127.0.0.1", port: 0 },
      pool: "edge",
      module: null,
      accessLog: "off",
      software: "test",
      clock: createBootClock(),
      random: createSystemRandom(),
      logger: this.#logger(),
      wallClock: () => Date.now(),
    });
  }

  #logger(): Logger {
    const log = (level: string) => (fields: LogFields, message: string) => {
      this.lines.push({ level, fields, message });
    };
    return { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
  }
}
