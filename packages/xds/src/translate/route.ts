import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import type { DirectResponse, Route } from "@belay/model";
import { HeaderValueOption_HeaderAppendAction } from "@belay/envoy-api/gen/config/core/v3/base";
import { RouteConfigurationSchema } from "@belay/envoy-api/gen/config/route/v3/route";
import {
  type HeaderMatcher,
  HeaderMatcherSchema,
  RetryPolicySchema,
  RouteActionSchema,
  type RouteMatch,
  RouteMatchSchema,
  type RouteSchema,
  type VirtualHostSchema,
} from "@belay/envoy-api/gen/config/route/v3/route_components";
import type { Draft, Source } from "../resources/resource.ts";
import { duration, sourceOf, toDraft } from "./draft.ts";
import { type EdgeOptions, names, type ServiceConfig } from "./input.ts";
import { edgeFilter, toRouteFilterConfig } from "./module.ts";
import { toRouteModuleConfig } from "./module-config.ts";

type RouteInit = MessageInitShape<typeof RouteSchema>;
type HostInit = MessageInitShape<typeof VirtualHostSchema>;

/** More than the refusals that a request may meet; the module ends it sooner (R2). */
const retriesMax = 24;
/** A stream without traffic ends after this, or after its time-out or its wait, if that is longer. */
const idleMsMin = 60_000;
/** How much sooner than the route's time-out a held request is answered with the reason. */
const answerMarginMs = 250;
const notFoundBody = "belay: no service has this host. Its service file names it under `hosts`.\n";
/** Envoy's own limit, below which nothing needs to be said. */
const directBodyBytesUsual = 4096;

/** R1, R3, R4: only refusals that are ours, and what never left this proxy. Nothing else is repeated. */
const retryPolicy = create(RetryPolicySchema, {
  retryOn: "retriable-headers,reset-before-request,connect-failure",
  retriableHeaders: [
    { name: "x-belay-refused", headerMatchSpecifier: { case: "presentMatch", value: true } },
  ],
  numRetries: retriesMax,
  retryBackOff: { baseInterval: duration(5), maxInterval: duration(25) },
});

const toMatch = ({ kind, value }: Route["match"], headers: HeaderMatcher[]): RouteMatch =>
  create(RouteMatchSchema, {
    pathSpecifier:
      kind === "path"
        ? { case: "path", value }
        : // Envoy takes a path-separated prefix without its last slash only.
          { case: value === "/" ? "prefix" : "pathSeparatedPrefix", value },
    headers,
  });

const headerHas = (name: string, value: string): HeaderMatcher =>
  create(HeaderMatcherSchema, {
    name,
    headerMatchSpecifier: {
      case: "stringMatch",
      value: { matchPattern: { case: "contains", value }, ignoreCase: true },
    },
  });

/** As Envoy knows an upgrade: nobody escapes a time-out by half of it. */
const upgradesOnly = [headerHas("upgrade", "websocket"), headerHas("connection", "upgrade")];

/** What differs between an ordinary request and a WebSocket on the same route. */
interface Limits {
  readonly timeoutMs: number;
  readonly idleMs: number;
  readonly parkMs: number;
}

const ordinaryLimits = (service: ServiceConfig, route: Route): Limits => {
  const { timeoutMs, websocketIdleMs } = route;
  const { parkMs } = service.ownership;
  // Without a time-out it is a stream, and idles like a socket.
  if (timeoutMs === 0) return { timeoutMs, idleMs: websocketIdleMs, parkMs };
  return {
    timeoutMs,
    idleMs: Math.max(idleMsMin, timeoutMs, parkMs) + answerMarginMs,
    parkMs: Math.min(parkMs, Math.max(timeoutMs - answerMarginMs, Math.ceil(timeoutMs / 2))),
  };
};

const websocketLimits = (service: ServiceConfig, route: Route): Limits => {
  const { parkMs } = service.ownership;
  return {
    timeoutMs: 0,
    idleMs: Math.max(route.websocketIdleMs, parkMs + answerMarginMs),
    parkMs,
  };
};

interface Place {
  readonly service: ServiceConfig;
  readonly route: Route;
  readonly options: EdgeOptions;
}

const forward = ({ service, route, options }: Place, limits: Limits) => {
  const { module } = options;
  const config = toRouteModuleConfig(service, route, limits.parkMs);
  const filters: Record<string, Any> = module
    ? { [edgeFilter]: toRouteFilterConfig(module, config) }
    : {};
  const action = create(RouteActionSchema, {
    clusterSpecifier: { case: "cluster", value: service.name },
    timeout: duration(limits.timeoutMs),
    idleTimeout: duration(limits.idleMs),
    retryPolicy,
    upgradeConfigs: route.websocket ? [] : [{ upgradeType: "websocket", enabled: false }],
  });
  return {
    action: { case: "route" as const, value: action },
    requestBodyBufferLimit: BigInt(service.replayBytes),
    typedPerFilterConfig: filters,
  };
};

const respond = ({ status, body, contentType }: DirectResponse) => {
  const specifier = { case: "inlineString", value: body } as const;
  const header = { key: "content-type", value: contentType };
  const appendAction = HeaderValueOption_HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD;
  return {
    action: {
      case: "directResponse" as const,
      value: body === "" ? { status } : { status, body: { specifier } },
    },
    responseHeadersToAdd: body === "" ? [] : [{ header, appendAction }],
  };
};

const toRoutes = (place: Place): RouteInit[] => {
  const { service, route } = place;
  const match = toMatch(route.match, []);
  const name = nameOf(service, route);
  if (route.respond !== undefined) return [{ name, match, ...respond(route.respond) }];
  const ordinary = { name, match, ...forward(place, ordinaryLimits(service, route)) };
  if (!route.websocket) return [ordinary];
  const upgrade = {
    name: `${name} websocket`,
    match: toMatch(route.match, upgradesOnly),
    ...forward(place, websocketLimits(service, route)),
  };
  return [upgrade, ordinary];
};

const nameOf = (service: ServiceConfig, { match }: Route): string =>
  `${service.name} ${match.kind} ${match.value}`;

const fallback: HostInit = {
  // No service has this name: theirs have no space.
  name: "no service",
  domains: ["*"],
  routes: [
    {
      name: "no service",
      match: { pathSpecifier: { case: "prefix", value: "/" } },
      ...respond({ status: 404, body: notFoundBody, contentType: "text/plain; charset=utf-8" }),
    },
  ],
};

const sourcesOf = (service: ServiceConfig): Source[] => [
  sourceOf(service, service.name, ""),
  ...service.routes.map((route) => sourceOf(service, nameOf(service, route), route.path)),
  ...service.hosts.map((host, index) => sourceOf(service, host, `hosts[${index}]`)),
];

const bodyBytes = (services: readonly ServiceConfig[]): number => {
  const bodies = services.flatMap(({ routes }) =>
    routes.map(({ respond: own }) => own?.body ?? ""),
  );
  return Math.max(...bodies.map((body) => new TextEncoder().encode(body).length), 0);
};

/** One route configuration for all services: a virtual host each, and a clear 404 for other hosts. */
export const toRouteConfiguration = (
  services: readonly ServiceConfig[],
  options: EdgeOptions,
): Draft => {
  const hosts = services.map((service): HostInit => ({
    name: service.name,
    domains: [...service.hosts],
    routes: service.routes.flatMap((route) => toRoutes({ service, route, options })),
  }));
  const hasRest = services.some((service) => service.hosts.includes("*"));
  const bytes = bodyBytes(services);
  return toDraft(RouteConfigurationSchema, {
    name: names.routes,
    sources: services.flatMap(sourcesOf),
    message: {
      name: names.routes,
      virtualHosts: hasRest ? hosts : [...hosts, fallback],
      // The Host header carries a port wherever the edge's is not the usual one.
      ignorePortInHostMatching: true,
      ...(bytes > directBodyBytesUsual ? { maxDirectResponseBodySizeBytes: bytes } : {}),
    },
  });
};
