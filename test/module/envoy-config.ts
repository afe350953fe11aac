/** What a test's upstream cluster and its routes need. */
export interface TestService {
  readonly name: string;
  readonly guarded: boolean;
  /** `127.0.0.1:port` of its servers; more than are registered is fine. */
  readonly endpoints: readonly string[];
  readonly http2?: boolean;
  /** Routes in order; the last should match everything. */
  readonly routes: readonly TestRoute[];
}

export interface TestRoute {
  readonly prefix: string;
  readonly host?: string;
  /** Members of the per-route configuration beside `service` and `guarded`. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly timeout?: string;
}

export interface TestEdge {
  readonly module: string;
  readonly edgePort: number;
  readonly adminPort: number;
  readonly coordinator: string;
  readonly services: readonly TestService[];
  readonly maxWaitMs?: number;
  readonly accessLog?: string;
  readonly keyInLogs?: "plain" | "hash";
}

const TYPE = "type.googleapis.com/";
const EXTENSIONS = `${TYPE}envoy.extensions.`;
export const REPLAY_BYTES = 262_144;

/** An Envoy bootstrap with everything static, as native/filter/README.md says. */
export function envoyConfig(edge: TestEdge): object {
  return {
    node: { id: "edge-1", cluster: "test" },
    admin: { address: address("127.0.0.1", edge.adminPort) },
    static_resources: {
      listeners: [edgeListener(edge), roomListener(edge.module)],
      clusters: edge.services.map((service) => cluster(edge.module, service)),
    },
    bootstrap_extensions: [
      {
        name: "envoy.bootstrap.internal_listener",
        typed_config: { "@type": `${EXTENSIONS}bootstrap.internal_listener.v3.InternalListener` },
      },
      {
        name: "envoy.bootstrap.dynamic_modules",
        typed_config: {
          "@type": `${EXTENSIONS}bootstrap.dynamic_modules.v3.DynamicModuleBootstrapExtension`,
          dynamic_module_config: moduleConfig(edge.module),
          extension_name: "belay",
          extension_config: json({
            coordinator: edge.coordinator,
            name: "edge-1",
            pool: "test",
            max_wait_ms: edge.maxWaitMs ?? 20_000,
          }),
        },
      },
    ],
  };
}

function edgeListener(edge: TestEdge): object {
  const settings = {
    access_log: edge.accessLog !== undefined,
    key_in_logs: edge.keyInLogs ?? "hash",
  };
  return {
    name: "edge",
    address: address("127.0.0.1", edge.edgePort),
    filter_chains: [
      {
        filters: [
          hcm({
            stat_prefix: "edge",
            ...(edge.accessLog === undefined ? {} : { access_log: [accessLog(edge.accessLog)] }),
            http_filters: [filter(edge.module, "belay.edge", settings), router()],
            route_config: {
              virtual_hosts: [
                {
                  name: "all",
                  domains: ["*"],
                  routes: edge.services.flatMap((service) =>
                    service.routes.map((route) => routeOf(edge.module, service, route)),
                  ),
                },
              ],
            },
          }),
        ],
      },
    ],
  };
}

function routeOf(module: string, service: TestService, route: TestRoute): object {
  return {
    match: {
      prefix: route.prefix,
      ...(route.host === undefined
        ? {}
        : { headers: [{ name: ":authority", string_match: { suffix: route.host } }] }),
    },
    request_body_buffer_limit: REPLAY_BYTES,
    route: {
      cluster: service.name,
      timeout: route.timeout ?? "30s",
      retry_policy: {
        retry_on: "retriable-headers,reset-before-request,connect-failure",
        retriable_headers: [{ name: "x-belay-refused", present_match: true }],
        num_retries: 24,
        retry_back_off: { base_interval: "0.005s", max_interval: "0.025s" },
      },
    },
    typed_per_filter_config: {
      "belay.edge": {
        "@type": `${EXTENSIONS}filters.http.dynamic_modules.v3.DynamicModuleFilterPerRoute`,
        dynamic_module_config: moduleConfig(module),
        filter_name: "belay.edge",
        filter_config: json({
          service: service.name,
          guarded: service.guarded,
          no_key: "refuse",
          park_ms: 12_000,
          replay_bytes: REPLAY_BYTES,
          ...route.config,
        }),
      },
    },
  };
}

function roomListener(module: string): object {
  return {
    name: "belay_room",
    internal_listener: {},
    filter_chains: [
      {
        filters: [
          hcm({
            stat_prefix: "belay_room",
            stream_idle_timeout: "0s",
            http_filters: [filter(module, "belay.room", {}), router()],
            route_config: {
              virtual_hosts: [
                {
                  name: "room",
                  domains: ["*"],
                  routes: [{ match: { prefix: "/" }, direct_response: { status: 500 } }],
                },
              ],
            },
          }),
        ],
      },
    ],
  };
}

function cluster(module: string, service: TestService): object {
  const settings = { service: service.name, guarded: service.guarded };
  const endpoints = service.endpoints.map((endpoint) => {
    const [host, port] = endpoint.split(":");
    return { endpoint: { address: address(host ?? "", Number(port)) } };
  });
  const room = {
    envoy_internal_address: { server_listener_name: "belay_room", endpoint_id: "room" },
  };
  const limit = 1_000_000;
  return {
    name: service.name,
    type: "STATIC",
    connect_timeout: "1s",
    load_assignment: {
      cluster_name: service.name,
      endpoints: [{ lb_endpoints: [...endpoints, { endpoint: { address: room } }] }],
    },
    circuit_breakers: {
      thresholds: [
        {
          max_retries: limit,
          max_requests: limit,
          max_connections: limit,
          max_pending_requests: limit,
        },
      ],
    },
    common_lb_config: { update_merge_window: "0s" },
    load_balancing_policy: {
      policies: [
        {
          typed_extension_config: {
            name: "envoy.load_balancing_policies.dynamic_modules",
            typed_config: {
              "@type": `${EXTENSIONS}load_balancing_policies.dynamic_modules.v3.DynamicModulesLoadBalancerConfig`,
              dynamic_module_config: moduleConfig(module),
              lb_policy_name: "belay.lb",
              lb_policy_config: json(settings),
            },
          },
        },
      ],
    },
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": `${EXTENSIONS}upstreams.http.v3.HttpProtocolOptions`,
        common_http_protocol_options: { idle_timeout: "4s" },
        explicit_http_config:
          service.http2 === true
            ? { http2_protocol_options: { allow_connect: true } }
            : { http_protocol_options: { enable_trailers: true } },
        http_filters: [
          filter(module, "belay.attempt", settings),
          {
            name: "envoy.filters.http.upstream_codec",
            typed_config: { "@type": `${EXTENSIONS}filters.http.upstream_codec.v3.UpstreamCodec` },
          },
        ],
      },
    },
  };
}

function hcm(more: object): object {
  return {
    name: "envoy.filters.network.http_connection_manager",
    typed_config: {
      "@type": `${EXTENSIONS}filters.network.http_connection_manager.v3.HttpConnectionManager`,
      codec_type: "AUTO",
      upgrade_configs: [{ upgrade_type: "websocket" }],
      http_protocol_options: { enable_trailers: true },
      http2_protocol_options: { allow_connect: true },
      ...more,
    },
  };
}

function filter(module: string, name: string, settings: object): object {
  return {
    name,
    typed_config: {
      "@type": `${EXTENSIONS}filters.http.dynamic_modules.v3.DynamicModuleFilter`,
      dynamic_module_config: moduleConfig(module),
      filter_name: name,
      filter_config: json(settings),
    },
  };
}

function router(): object {
  return {
    name: "envoy.filters.http.router",
    typed_config: { "@type": `${EXTENSIONS}filters.http.router.v3.Router` },
  };
}

function accessLog(format: string): object {
  return {
    name: "envoy.access_loggers.stdout",
    typed_config: {
      "@type": `${EXTENSIONS}access_loggers.stream.v3.StdoutAccessLog`,
      log_format: { text_format_source: { inline_string: `${format}\n` } },
    },
  };
}

function moduleConfig(filename: string): object {
  return { module: { local: { filename } }, do_not_close: true, metrics_namespace: "belay" };
}

function json(value: object): object {
  return { "@type": `${TYPE}google.protobuf.StringValue`, value: JSON.stringify(value) };
}

function address(host: string, port: number): object {
  return { socket_address: { address: host, port_value: port } };
}
