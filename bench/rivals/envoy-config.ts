// The configuration of one Envoy with a listener for each way to route that Belay is measured beside.

const extensions = "type.googleapis.com/envoy.extensions";
const typed = (name: string, type: string, fields: object = {}): object => ({
  name,
  typed_config: { "@type": `${extensions}.${type}`, ...fields },
});

export interface RivalPorts {
  readonly admin: number;
  readonly plain: number;
  readonly empty: number;
  readonly session: number;
  readonly ringHash: number;
  readonly lua: number;
  readonly extProc: number;
}

export interface RivalInput {
  readonly ports: RivalPorts;
  readonly upstreamPorts: readonly number[];
  readonly emptyModule: string;
  readonly luaFile: string;
  readonly extProcPort: number;
}

/** Envoy's bootstrap, to be written as JSON. */
export function createRivalsConfig(input: RivalInput): object {
  return {
    admin: { address: address(input.ports.admin) },
    static_resources: { listeners: createListeners(input), clusters: createClusters(input) },
  };
}

function createListeners({ ports, emptyModule, luaFile }: RivalInput): object[] {
  const rewritten = { prefix_rewrite: "/" };
  const empty = typed("empty", "filters.http.dynamic_modules.v3.DynamicModuleFilter", {
    dynamic_module_config: { module: { local: { filename: emptyModule } }, do_not_close: true },
    filter_name: "empty",
  });
  const session = typed("session", "filters.http.stateful_session.v3.StatefulSession", {
    session_state: typed(
      "envoy.http.stateful_session.header",
      "http.stateful_session.header.v3.HeaderBasedSessionState",
      {
        name: "x-session",
      },
    ),
  });
  const lua = typed("lua", "filters.http.lua.v3.Lua", {
    default_source_code: { filename: luaFile },
  });
  const extProc = typed("ext-proc", "filters.http.ext_proc.v3.ExternalProcessor", {
    grpc_service: { envoy_grpc: { cluster_name: "ext-proc" }, timeout: "5s" },
    message_timeout: "5s",
    processing_mode: { request_header_mode: "SEND", response_header_mode: "SKIP" },
    mutation_rules: { allow_all_routing: true },
  });
  const hash = { hash_policy: [{ header: { header_name: "x-player-id" } }] };
  return [
    listener(ports.plain, [], route("round-robin", rewritten)),
    listener(ports.empty, [empty], route("round-robin", rewritten)),
    listener(ports.session, [session], route("round-robin", rewritten)),
    listener(ports.ringHash, [], route("ring-hash", { ...rewritten, ...hash })),
    listener(ports.lua, [lua], route("round-robin", {})),
    listener(ports.extProc, [extProc], route("override-host", {})),
  ];
}

function listener(port: number, filters: readonly object[], routes: readonly object[]): object {
  const manager = typed(
    "manager",
    "filters.network.http_connection_manager.v3.HttpConnectionManager",
    {
      stat_prefix: `port_${port}`,
      http_filters: [...filters, typed("router", "filters.http.router.v3.Router")],
      route_config: { virtual_hosts: [{ name: "all", domains: ["*"], routes }] },
    },
  );
  return { name: `port-${port}`, address: address(port), filter_chains: [{ filters: [manager] }] };
}

/** With a rewrite where the path has a key to take away, and without for the POSTs of B2. */
function route(name: string, action: object): object[] {
  return [
    { match: { prefix: "/s/" }, route: { cluster: name, ...action } },
    { match: { prefix: "/" }, route: { cluster: name } },
  ];
}

function createClusters({ upstreamPorts, extProcPort }: RivalInput): object[] {
  const roundRobin = policy("round_robin", "RoundRobin");
  const overrideHost = policy("override_host", "OverrideHost", {
    override_host_sources: [{ header: "x-destination" }],
    fallback_policy: { policies: [roundRobin] },
  });
  return [
    { ...cluster("round-robin", upstreamPorts), lb_policy: "ROUND_ROBIN" },
    { ...cluster("ring-hash", upstreamPorts), lb_policy: "RING_HASH" },
    {
      ...cluster("override-host", upstreamPorts),
      load_balancing_policy: { policies: [overrideHost] },
    },
    {
      ...cluster("ext-proc", [extProcPort]),
      typed_extension_protocol_options: {
        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
          "@type": `${extensions}.upstreams.http.v3.HttpProtocolOptions`,
          explicit_http_config: { http2_protocol_options: {} },
        },
      },
    },
  ];
}

function policy(name: string, type: string, fields: object = {}): object {
  return {
    typed_extension_config: typed(
      `envoy.load_balancing_policies.${name}`,
      `load_balancing_policies.${name}.v3.${type}`,
      fields,
    ),
  };
}

function cluster(name: string, ports: readonly number[]): object {
  return {
    name,
    type: "STATIC",
    connect_timeout: "1s",
    load_assignment: {
      cluster_name: name,
      endpoints: [
        { lb_endpoints: ports.map((port) => ({ endpoint: { address: address(port) } })) },
      ],
    },
  };
}

function address(port: number): object {
  return { socket_address: { address: "127.0.0.1", port_value: port } };
}
