const prefix = "type.googleapis.com/";

/** `envoy.config.cluster.v3.Cluster` → `type.googleapis.com/envoy.config.cluster.v3.Cluster`. */
export const typeUrl = (name: string): string => prefix + name;

/** The message name in a type URL, whatever stands before its last slash. */
export const typeName = (url: string): string => url.slice(url.lastIndexOf("/") + 1);

/** The resource types that travel by ADS. */
export const typeUrls = {
  cluster: typeUrl("envoy.config.cluster.v3.Cluster"),
  endpoint: typeUrl("envoy.config.endpoint.v3.ClusterLoadAssignment"),
  listener: typeUrl("envoy.config.listener.v3.Listener"),
  route: typeUrl("envoy.config.route.v3.RouteConfiguration"),
} as const;
