import { type EdgeAddress, type ModuleLocation, names } from "./input.ts";
import type { BootstrapModuleConfig } from "./module-config.ts";

// Plain JSON, without generated types: `belay proxy` starts without loading them.

const type = (name: string): { "@type": string } => ({ "@type": `type.googleapis.com/${name}` });
const text = (value: unknown) => ({
  ...type("google.protobuf.StringValue"),
  value: JSON.stringify(value),
});

/** What one proxy process needs to know before it can ask anybody. Addresses are IP literals. */
export interface BootstrapOptions {
  /** Its name, unique in the pool. */
  readonly name: string;
  readonly pool: string;
  readonly edge: EdgeAddress;
  /** Must be loopback: whoever reaches it owns the proxy. */
  readonly admin: EdgeAddress;
  readonly controlPlane: EdgeAddress;
  /** Null: no ownership, as in `EdgeOptions`. */
  readonly module: ModuleLocation | null;
  readonly coordinator: EdgeAddress;
  /** How long the edge stays shut for the first snapshot of the coordinator. */
  readonly maxWaitMs: number;
  readonly tokenFile?: string;
  /** Envoy's code and heap go to huge pages, where the kernel has them. */
  readonly hugePages: boolean;
  /** Client connections beyond this are closed: take what the file descriptors allow, halved. */
  readonly connectionsMax: number;
}

const socket = ({ address, port }: EdgeAddress) => ({
  socket_address: { address, port_value: port },
});

const dynamicModule = (location: ModuleLocation) => ({
  ...("name" in location
    ? { name: location.name }
    : { module: { local: { filename: location.file } } }),
  do_not_close: true,
  metrics_namespace: "belay",
});

const loopback = /^(127\.|::1$)/;

/** The control plane's upstream cluster: h2, and a dead connection is noticed within 15 s. */
const controlPlaneCluster = ({ controlPlane }: BootstrapOptions) => ({
  name: "control_plane",
  type: "STATIC",
  connect_timeout: "1s",
  typed_extension_protocol_options: {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
      ...type("envoy.extensions.upstreams.http.v3.HttpProtocolOptions"),
      explicit_http_config: {
        http2_protocol_options: { connection_keepalive: { interval: "10s", timeout: "5s" } },
      },
    },
  },
  load_assignment: {
    cluster_name: "control_plane",
    endpoints: [{ lb_endpoints: [{ endpoint: { address: socket(controlPlane) } }] }],
  },
});

/** Where requests wait inside the proxy; static, so that no update can cut them off. */
const waitingRoom = (module: ModuleLocation) => ({
  name: names.room,
  internal_listener: {},
  filter_chains: [
    {
      filters: [
        {
          name: "envoy.filters.network.http_connection_manager",
          typed_config: {
            ...type(
              "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            ),
            stat_prefix: names.room,
            codec_type: "AUTO",
            stream_idle_timeout: "0s",
            upgrade_configs: [{ upgrade_type: "websocket" }],
            http2_protocol_options: { allow_connect: true },
            http_filters: [
              {
                name: "belay.room",
                typed_config: {
                  ...type("envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter"),
                  dynamic_module_config: dynamicModule(module),
                  filter_name: "belay.room",
                },
              },
              {
                name: "envoy.filters.http.router",
                typed_config: type("envoy.extensions.filters.http.router.v3.Router"),
              },
            ],
            route_config: {
              name: names.room,
              virtual_hosts: [
                {
                  name: "room",
                  domains: ["*"],
                  routes: [{ match: { prefix: "/" }, direct_response: { status: 500 } }],
                },
              ],
            },
          },
        },
      ],
    },
  ],
});

const moduleExtensions = (options: BootstrapOptions, module: ModuleLocation) => {
  const { name, pool, coordinator, maxWaitMs, tokenFile, hugePages } = options;
  const { address, port } = coordinator;
  const config: BootstrapModuleConfig = {
    coordinator: address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`,
    name,
    pool,
    max_wait_ms: maxWaitMs,
    ...(tokenFile === undefined ? {} : { token_file: tokenFile }),
    ...(hugePages ? { huge_pages: true } : {}),
  };
  return [
    {
      name: "envoy.bootstrap.internal_listener",
      typed_config: type("envoy.extensions.bootstrap.internal_listener.v3.InternalListener"),
    },
    {
      name: "envoy.bootstrap.dynamic_modules",
      typed_config: {
        ...type("envoy.extensions.bootstrap.dynamic_modules.v3.DynamicModuleBootstrapExtension"),
        dynamic_module_config: dynamicModule(module),
        extension_name: "belay",
        extension_config: text(config),
      },
    },
  ];
};

const dynamicResources = {
  ads_config: {
    api_type: "DELTA_GRPC",
    transport_api_version: "V3",
    set_node_on_first_message_only: true,
    grpc_services: [
      {
        envoy_grpc: {
          cluster_name: "control_plane",
          // Envoy adds full jitter: a restarted control plane is not met by everybody at once.
          retry_policy: { retry_back_off: { base_interval: "0.2s", max_interval: "5s" } },
        },
      },
    ],
  },
  // 0: without configuration a proxy is not ready, however long that takes.
  cds_config: { ads: {}, resource_api_version: "V3", initial_fetch_timeout: "0s" },
  lds_config: { ads: {}, resource_api_version: "V3", initial_fetch_timeout: "0s" },
};

/** A proxy's whole bootstrap, as Envoy reads it from a JSON file. Throws when admin is not loopback. */
export const toBootstrap = (options: BootstrapOptions) => {
  const { name, pool, edge, admin, module, connectionsMax } = options;
  if (!loopback.test(admin.address))
    throw new RangeError(`Envoy's admin port must be on loopback, not on ${admin.address}`);
  return {
    node: { id: name, cluster: pool, metadata: { edge } },
    admin: { address: socket(admin) },
    dynamic_resources: dynamicResources,
    static_resources: {
      clusters: [controlPlaneCluster(options)],
      ...(module === null ? {} : { listeners: [waitingRoom(module)] }),
    },
    ...(module === null ? {} : { bootstrap_extensions: moduleExtensions(options, module) }),
    // A service that nobody calls costs no counters.
    deferred_stat_options: { enable_deferred_creation_stats: true },
    stats_config: {
      stats_matcher: {
        exclusion_list: {
          patterns: [
            // Per worker and per breaker: thousands of series that no one reads.
            { safe_regex: { regex: String.raw`listener\..*\.worker_\d+\..*` } },
            { safe_regex: { regex: String.raw`cluster\..*\.circuit_breakers\..*` } },
          ],
        },
      },
    },
    overload_manager: {
      resource_monitors: [
        {
          name: "envoy.resource_monitors.global_downstream_max_connections",
          typed_config: {
            ...type(
              "envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
            ),
            max_active_downstream_connections: String(connectionsMax),
          },
        },
      ],
    },
  };
};
