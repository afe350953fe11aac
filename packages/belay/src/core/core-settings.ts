import type { LogFormat, LogLevel } from "../log/process-logger.ts";

export type CoreRole = "coordinator" | "control-plane";

/** What `belay core` takes, flags and environment read. */
export interface CoreSettings {
  readonly roles: readonly CoreRole[];
  readonly bind: string;
  readonly coordinatorPort: number;
  /** "ip:port", for a control plane whose coordinator is elsewhere. */
  readonly coordinator?: string;
  readonly apiPort: number;
  readonly xdsPort: number;
  readonly metricsPort?: number;
  readonly data: string;
  readonly services?: string;
  readonly accessLog: "off" | "hash" | "plain";
  readonly tokenFile?: string;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
}
