import { packAny } from "@belay/envoy-api";
import {
  Cluster_DiscoveryType,
  ClusterSchema,
} from "@belay/envoy-api/gen/config/cluster/v3/cluster";
import { RoundRobinSchema } from "@belay/envoy-api/gen/extensions/load_balancing_policies/round_robin/v3/round_robin";
import { UpstreamCodecSchema } from "@belay/envoy-api/gen/extensions/filters/http/upstream_codec/v3/upstream_codec";
import { HttpProtocolOptionsSchema } from "@belay/envoy-api/gen/extensions/upstreams/http/v3/http_protocol_options";
import type { Draft } from "../resources/resource.ts";
import { adsSource, duration, sourceOf, toDraft } from "./draft.ts";
import type { EdgeOptions, ServiceConfig } from "./input.ts";
import { toAttemptFilter, toLbPolicy } from "./module.ts";
import { toUpstreamModuleConfig } from "./module-config.ts";

const connectTimeoutMs = 1000;
/** R3: below the applications' keep-alive (Node's is 5 s), so that no request meets a closing socket. */
const upstreamIdleMs = 4000;
const connectionBufferBytes = 256 * 1024;
/** Envoy's own limits would turn refusals into failures (max_retries is 3); the module bounds what it holds. */
const unlimited = 1_000_000;

const http1 = { case: "httpProtocolOptions", value: {} } as const;
/** Windows: held answers on a shared connection must not stall its other streams (envoy.md 1b.13). */
const http2 = {
  case: "http2ProtocolOptions",
  value: {
    allowConnect: true,
    initialStreamWindowSize: 256 * 1024,
    initialConnectionWindowSize: 64 * 1024 * 1024,
    connectionKeepalive: { interval: duration(30_000), timeout: duration(5000) },
  },
} as const;

const protocolOptions = (service: ServiceConfig, { module }: EdgeOptions) => {
  const codec = {
    name: "envoy.filters.http.upstream_codec",
    configType: { case: "typedConfig" as const, value: packAny(UpstreamCodecSchema, {}) },
  };
  const filters = module
    ? [toAttemptFilter(module, toUpstreamModuleConfig(service)), codec]
    : [codec];
  return packAny(HttpProtocolOptionsSchema, {
    commonHttpProtocolOptions: { idleTimeout: duration(upstreamIdleMs) },
    upstreamProtocolOptions: {
      case: "explicitHttpConfig",
      value: { protocolConfig: service.protocol === "h2" ? http2 : http1 },
    },
    httpFilters: filters,
  });
};

const policy = (service: ServiceConfig, { module }: EdgeOptions) =>
  module
    ? toLbPolicy(module, toUpstreamModuleConfig(service))
    : {
        name: "envoy.load_balancing_policies.round_robin",
        typedConfig: packAny(RoundRobinSchema, {}),
      };

/** The upstream cluster of a service: its name, endpoints by EDS, the owner picked on every attempt. */
export const toCluster = (service: ServiceConfig, options: EdgeOptions): Draft =>
  toDraft(ClusterSchema, {
    name: service.name,
    sources: [sourceOf(service, service.name, "")],
    message: {
      name: service.name,
      clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.EDS },
      edsClusterConfig: { edsConfig: adsSource() },
      connectTimeout: duration(connectTimeoutMs),
      perConnectionBufferLimitBytes: connectionBufferBytes,
      circuitBreakers: {
        thresholds: [
          {
            maxConnections: unlimited,
            maxPendingRequests: unlimited,
            maxRequests: unlimited,
            maxRetries: unlimited,
          },
        ],
      },
      commonLbConfig: {
        // A4 counts on endpoints taking effect when they come; and nobody is ejected here.
        updateMergeWindow: duration(0),
        healthyPanicThreshold: { value: 0 },
      },
      loadBalancingPolicy: {
        policies: [{ typedExtensionConfig: policy(service, options) }],
      },
      typedExtensionProtocolOptions: {
        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": protocolOptions(service, options),
      },
      upstreamConnectionOptions: {
        tcpKeepalive: { keepaliveTime: 60, keepaliveInterval: 10, keepaliveProbes: 3 },
      },
    },
  });
