import { packAny, packString } from "@belay/envoy-api";
import {
  DynamicModuleFilterPerRouteSchema,
  DynamicModuleFilterSchema,
} from "@belay/envoy-api/gen/extensions/filters/http/dynamic_modules/v3/dynamic_modules";
import { DynamicModulesLoadBalancerConfigSchema } from "@belay/envoy-api/gen/extensions/load_balancing_policies/dynamic_modules/v3/dynamic_modules";
import type { Any } from "@bufbuild/protobuf/wkt";
import type { ModuleLocation } from "./input.ts";
import type { EdgeModuleConfig, RouteModuleConfig, UpstreamModuleConfig } from "./module-config.ts";

/** Filter name of the module's downstream filter; routes address their configuration to it. */
export const edgeFilter = "belay.edge";
const attemptFilter = "belay.attempt";
const lbPolicy = "belay.lb";

const dynamicModule = (location: ModuleLocation) => {
  // do_not_close: threads and thread-locals of the module outlive a configuration.
  const rest = { doNotClose: true, metricsNamespace: "belay" } as const;
  if ("name" in location) return { name: location.name, ...rest };
  const specifier = {
    case: "local",
    value: { specifier: { case: "filename", value: location.file } },
  } as const;
  return { module: { specifier }, ...rest };
};

const typed = (name: string, value: Any) => ({
  name,
  configType: { case: "typedConfig" as const, value },
});

const httpFilter = (
  location: ModuleLocation,
  filterName: string,
  config: EdgeModuleConfig | UpstreamModuleConfig,
) =>
  typed(
    filterName,
    packAny(DynamicModuleFilterSchema, {
      dynamicModuleConfig: dynamicModule(location),
      filterName,
      filterConfig: packString(JSON.stringify(config)),
    }),
  );

/** The downstream filter: finds the key, holds a request on a miss. */
export const toEdgeFilter = (location: ModuleLocation, config: EdgeModuleConfig) =>
  httpFilter(location, edgeFilter, config);

/** The upstream filter, once per attempt: epoch, incarnation, attempt; reads refusals. */
export const toAttemptFilter = (location: ModuleLocation, config: UpstreamModuleConfig) =>
  httpFilter(location, attemptFilter, config);

/** What the downstream filter is told on one route. */
export const toRouteFilterConfig = (location: ModuleLocation, config: RouteModuleConfig): Any =>
  packAny(DynamicModuleFilterPerRouteSchema, {
    dynamicModuleConfig: dynamicModule(location),
    filterName: edgeFilter,
    filterConfig: packString(JSON.stringify(config)),
  });

/** The LB policy that picks the owner on every attempt (R4). */
export const toLbPolicy = (location: ModuleLocation, config: UpstreamModuleConfig) => ({
  name: "envoy.load_balancing_policies.dynamic_modules",
  typedConfig: packAny(DynamicModulesLoadBalancerConfigSchema, {
    dynamicModuleConfig: dynamicModule(location),
    lbPolicyName: lbPolicy,
    lbPolicyConfig: packString(JSON.stringify(config)),
  }),
});
