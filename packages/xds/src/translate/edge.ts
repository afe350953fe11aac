import type { Draft } from "../resources/resource.ts";
import { toCluster } from "./cluster.ts";
import type { EdgeOptions, ServiceConfig } from "./input.ts";
import { toRouteConfiguration } from "./route.ts";

/**
 * What every proxy of an edge pool gets for these services: an upstream cluster each, and the routes.
 * Services must be linked (names and hosts belong to one); their order does not matter. Listeners
 * differ by proxy (`toListener`), endpoints come on their own.
 */
export const translateEdge = (
  services: readonly ServiceConfig[],
  options: EdgeOptions,
): Draft[] => {
  const sorted = services.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return [
    ...sorted.map((service) => toCluster(service, options)),
    toRouteConfiguration(sorted, options),
  ];
};
