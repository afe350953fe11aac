import type { LogFormat, LogLevel } from "../log/process-logger.ts";

/** `tcp`: the port accepts; `http`: a GET of the path answers 2xx. */
export type HealthCheck =
  | { readonly kind: "tcp" }
  | { readonly kind: "http"; readonly path: string };

/** What `belay run` takes, flags and environment read. Times in milliseconds. */
export interface RunSettings {
  readonly service: string;
  readonly port: number | "auto";
  readonly id?: string;
  readonly zone: string;
  readonly capacity: number;
  readonly health: HealthCheck;
  readonly startTimeout: number;
  readonly advertise?: string;
  readonly restart?: boolean;
  readonly onLostLease: "keep" | "stop";
  readonly stopTimeout: number;
  readonly coordinatorPort: number;
  readonly coordinator?: string;
  readonly edgePort: number;
  readonly edgeUrl?: string;
  readonly tokenFile?: string;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
}
