import type { LogFormat, LogLevel } from "../log/process-logger.ts";

/** What `belay up` takes, flags and environment read. */
export interface UpSettings {
  readonly demo?: boolean;
  readonly edgePort: number;
  readonly apiPort: number;
  readonly coordinatorPort: number;
  readonly xdsPort: number;
  readonly envoyAdminPort: number;
  readonly bind: string;
  readonly data: string;
  readonly services?: string;
  readonly tokenFile?: string;
  readonly envoy?: string;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
}
