import type { LogFields, Logger } from "@belay/model";
import { checkServiceFiles, formatProblem } from "@belay/model";
import {
  AdsServer,
  createSnapshot,
  type Draft,
  edgeListeners,
  type EdgeOptions,
  translateEdge,
} from "@belay/xds";

/** A service file's text; `more` is YAML for its end. */
export const serviceFile = (name: string, more = ""): { file: string; text: string } => ({
  file: `${name}.yaml`,
  text: `service: ${name}\nhosts: [${name}.test]\nkey: none\n${more}`,
});

export const plain: EdgeOptions = { module: null, accessLog: "off" };

export interface Line {
  readonly level: string;
  readonly fields: LogFields;
  readonly message: string;
}

/** An AdsServer fed from service files, as the control plane feeds it. */
export class ControlPlaneUnderTest {
  readonly lines: Line[] = [];
  readonly server: AdsServer;
  readonly #options: EdgeOptions;
  readonly #pool: string;
  #listeners;

  constructor(options: EdgeOptions = plain, pool = "edge", lastEndpoint?: Uint8Array) {
    this.#options = options;
    this.#pool = pool;
    this.#listeners = edgeListeners(options);
    const log = (level: string) => (fields: LogFields, message: string) => {
      this.lines.push({ level, fields, message });
    };
    const logger: Logger = {
      debug: log("debug"),
      info: log("info"),
      warn: log("warn"),
      error: log("error"),
    };
    this.server = new AdsServer({
      logger,
      ...(lastEndpoint === undefined ? {} : { lastEndpoint }),
    });
  }

  /** `change` may spoil what the translation made. */
  apply(
    files: readonly { file: string; text: string }[],
    change: (drafts: Draft[]) => Draft[] = (drafts) => drafts,
  ): void {
    const { services, problems } = checkServiceFiles(files);
    if (problems.length > 0) throw new Error(problems.map(formatProblem).join("\n"));
    const drafts = change(translateEdge(services, this.#options));
    this.server.setSnapshot(this.#pool, createSnapshot(drafts), this.#listeners);
  }

  endpoints(service: string, ...addresses: readonly string[]): void {
    this.server.setEndpoints(this.#pool, service, addresses);
  }

  get inSync(): boolean {
    const proxies = this.server.status();
    return proxies.length > 0 && proxies.every((proxy) => proxy.inSync);
  }
}
