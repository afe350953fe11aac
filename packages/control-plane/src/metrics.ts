import { Gauge, Registry } from "prom-client";

/** Everything that is counted, read when scraped. */
export interface ControlPlaneFigures {
  readonly services: number;
  readonly filesRefused: number;
  readonly filesLastGood: number;
  readonly definitionsRefused: number;
  readonly alarm: boolean;
  readonly coordinatorConnected: boolean;
  readonly servers: number;
  readonly proxies: number;
  readonly proxiesInSync: number;
  readonly nacks: number;
  readonly xdsResponses: number;
  readonly xdsBytes: number;
  readonly xdsRejections: number;
  readonly xdsStreamsRefused: number;
}

/** Name and help; a label would let values from outside in, so there is none. */
const described: Readonly<
  Record<keyof ControlPlaneFigures, readonly [name: string, help: string]>
> = {
  services: ["services", "services that proxies get"],
  filesRefused: ["service_files_refused", "service files with problems that never were good"],
  filesLastGood: [
    "service_files_last_good",
    "service files with problems whose last good text is served",
  ],
  definitionsRefused: ["definitions_refused", "services that the coordinator refuses"],
  alarm: ["alarm", "1: new configuration cannot reach proxies, the last good state is served"],
  coordinatorConnected: ["coordinator_connected", "1: connected to the coordinator"],
  servers: ["servers", "registered servers"],
  proxies: ["proxies", "connected proxies"],
  proxiesInSync: ["proxies_in_sync", "connected proxies that confirmed all they should hold"],
  nacks: ["nacks", "resources that proxies refuse now"],
  xdsResponses: ["xds_responses_total", "xDS responses sent"],
  xdsBytes: ["xds_bytes_total", "bytes of xDS responses"],
  xdsRejections: ["xds_rejections_total", "resources that proxies refused since the start"],
  xdsStreamsRefused: ["xds_streams_refused_total", "streams turned away at the cap"],
};

/** Prometheus text of the figures. */
export class ControlPlaneMetrics {
  readonly #registry = new Registry();
  readonly #gauges = new Map<string, Gauge>();
  readonly #read: () => ControlPlaneFigures;

  constructor(read: () => ControlPlaneFigures) {
    this.#read = read;
    for (const [figure, [name, help]] of Object.entries(described)) {
      const options = { name: `belay_control_plane_${name}`, help, registers: [this.#registry] };
      this.#gauges.set(figure, new Gauge(options));
    }
  }

  text(): Promise<string> {
    for (const [figure, value] of Object.entries(this.#read())) {
      this.#gauges.get(figure)?.set(Number(value));
    }
    return this.#registry.metrics();
  }
}
