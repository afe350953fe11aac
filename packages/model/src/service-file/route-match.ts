import type { RouteMatch } from "./service.ts";

/** True if the route takes the path (without query). A prefix ends at a segment border. */
export function matchesRoute(match: RouteMatch, path: string): boolean {
  if (match.kind === "path") return path === match.value;
  if (match.value === "/") return true;
  return path === match.value || path.startsWith(`${match.value}/`);
}

/** True if every path that `inner` takes is taken by `outer`. */
export function covers(outer: RouteMatch, inner: RouteMatch): boolean {
  if (outer.kind === "path") return inner.kind === "path" && inner.value === outer.value;
  return matchesRoute(outer, inner.value);
}

/** `prefix /rpc`, for people. */
export const formatMatch = (match: RouteMatch): string => `${match.kind} ${match.value}`;
