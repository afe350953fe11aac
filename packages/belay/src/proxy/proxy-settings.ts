import type { LogFormat, LogLevel } from "../log/process-logger.ts";

/** What `belay proxy` takes, flags and environment read. Times in milliseconds. */
export interface ProxySettings {
  readonly edgePort: number;
  readonly bind: string;
  readonly envoyAdminPort: number;
  readonly coordinatorPort: number;
  /** "ip:port"; undefined: loopback and coordinatorPort. */
  readonly coordinator?: string;
  readonly xdsPort: number;
  /** "ip:port"; undefined: loopback and xdsPort. */
  readonly xds?: string;
  readonly name?: string;
  readonly pool: string;
  readonly drainTime: number;
  readonly maxWait: number;
  readonly concurrency?: number;
  readonly envoy?: string;
  readonly module?: string;
  readonly metricsPort?: number;
  readonly data: string;
  readonly tokenFile?: string;
  readonly hugePages: "auto" | "off";
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
}
