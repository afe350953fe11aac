/** What `belay doctor` takes, flags and environment read. */
export interface DoctorSettings {
  readonly output: "table" | "json";
  readonly envoy?: string;
  readonly module?: string;
  readonly data: string;
  readonly bind: string;
  readonly edgePort: number;
  readonly apiPort: number;
  readonly coordinatorPort: number;
  readonly xdsPort: number;
  readonly envoyAdminPort: number;
  readonly api: string;
  readonly tokenFile?: string;
}
