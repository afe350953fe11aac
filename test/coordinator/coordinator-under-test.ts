import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CoordinatorConnection, createBootClock, createSystemRandom, Role } from "@belay/protocol";
import { Child, freePorts, runTypeScript, until } from "@belay/testkit";

const quiet = (): void => undefined;
/** For peers in tests: what goes wrong shows in the assertions. */
export const quietLogger = { debug: quiet, info: quiet, warn: quiet, error: quiet };

export interface ServiceOptions {
  readonly name?: string;
  readonly leaseMs?: number;
  readonly drainMs?: number;
  readonly guarded?: boolean;
  readonly minted?: boolean;
}

/** A coordinator process with its own data folder, which can be killed and started again. */
export class CoordinatorUnderTest {
  readonly dataDir = mkdtempSync(join(tmpdir(), "belay-coordinator-"));
  readonly port: number;
  readonly control: CoordinatorConnection;
  process: Child;
  readonly #closing: (() => void | Promise<unknown>)[] = [];

  private constructor(port: number) {
    this.port = port;
    this.process = this.#spawn();
    this.control = this.connect(Role.CONTROL_PLANE, "control-plane");
  }

  static async start(...services: ServiceOptions[]): Promise<CoordinatorUnderTest> {
    const [port = 0] = await freePorts(1);
    const coordinator = new CoordinatorUnderTest(port);
    await coordinator.process.printed(/ready on/);
    for (const service of services) await coordinator.define(service);
    return coordinator;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  async define(options: ServiceOptions): Promise<void> {
    const { leaseMs = 3000 } = options;
    await until("the control plane is connected", () => this.control.connected);
    await this.control.defineServices([
      {
        name: options.name ?? "world",
        leaseMs,
        feedLeaseMs: leaseMs,
        idleMs: 1_800_000,
        drainMs: options.drainMs ?? 2000,
        parkMs: 5000,
        guarded: options.guarded ?? true,
        minted: options.minted ?? false,
        placement: 1,
        movesPerSecond: 1000,
      },
    ]);
  }

  connect(
    role: Role,
    name: string,
    handlers: Partial<ConstructorParameters<typeof CoordinatorConnection>[0]> = {},
  ): CoordinatorConnection {
    const connection = new CoordinatorConnection({
      address: { host: "127.0.0.1", port: this.port },
      role,
      name,
      software: "test",
      clock: createBootClock(),
      random: createSystemRandom(),
      logger: quietLogger,
      ...handlers,
    });
    this.onClose(() => connection.close());
    return connection;
  }

  onClose(close: () => void | Promise<unknown>): void {
    this.#closing.push(close);
  }

  async kill(): Promise<void> {
    await this.process.kill();
  }

  async restart(): Promise<void> {
    if (this.process.running) await this.process.kill();
    this.process = this.#spawn();
    await this.process.printed(/ready on/);
  }

  /** The value of a metric, summed over its label sets. */
  async metric(name: string): Promise<number> {
    const before = this.process.output.length;
    this.process.signal("SIGUSR2");
    const text = await until("metrics are printed", () => {
      const printed = this.process.output.slice(before);
      return printed.includes("belay_coordinator_store_went_back_total ") && printed;
    });
    let sum = 0;
    for (const line of text.split("\n")) {
      if (new RegExp(`^${name}(\\{|\\s)`).test(line)) sum += Number(line.split(" ").at(-1));
    }
    return sum;
  }

  async stop(): Promise<void> {
    for (const close of this.#closing.toReversed()) await close();
    if (this.process.running) await this.process.kill();
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  #spawn(): Child {
    const script = join(import.meta.dirname, "coordinator-process.ts");
    return new Child("coordinator", [...runTypeScript, script, this.dataDir, String(this.port)]);
  }
}
