import { matchHost, parseHostTemplate } from "../key/host-template.ts";
import { matchPath, parsePathTemplate } from "../key/path-template.ts";
import { balanced, buildKeyRule, type Complain } from "./key-rule.ts";
import type { MemberPath } from "./outline.ts";
import { memberText } from "./outline.ts";
import { formatDuration } from "./quantity.ts";
import { covers } from "./route-match.ts";
import {
  HOSTS_MAX,
  ROUTES_MAX,
  type RawOwnership,
  type RawRoute,
  type RawService,
} from "./schema.ts";
import type { KeyRule, Ownership, Route, RouteMatch, Service } from "./service.ts";

const leaseMsDefault = 15_000;
const drainMsDefault = 10_000;
/** By how much a request outwaits a drain (M5). */
const parkBeyondDrainMs = 2000;
const timeoutMsDefault = 15_000;
const websocketIdleMsDefault = 3_600_000;
/** Of a private range, so that no client takes it for something else. */
const closeCodeDefault = 4421;

/** A checked file with its defaults filled in; what contradicts itself is complained of. */
export function buildService(raw: RawService, complain: Complain): Omit<Service, "source"> {
  const hosts = raw.hosts ?? ["*"];
  if (hosts.length === 0)
    complain(["hosts"], "the list is empty", 'name a host, or leave it out for "*"');
  if (hosts.length > HOSTS_MAX)
    complain(["hosts"], `there are ${hosts.length} hosts`, `name at most ${HOSTS_MAX}`);
  for (const [index, host] of hosts.entries()) {
    if (hosts.indexOf(host) < index)
      complain(["hosts", index], `${host} stands there twice`, "keep one");
  }
  if (raw.servers?.registered === false) {
    complain(
      ["servers", "registered"],
      "servers that do not register are not known yet",
      "leave it out",
    );
  }
  const key = buildKeyRule(raw.key, ["key"], complain);
  checkHostPlaces(key, hosts, { at: ["key"], complain });
  const websocketIdleMs = raw.websocket?.idle ?? websocketIdleMsDefault;
  const defaults: RouteDefaults = {
    key,
    hosts,
    websocket: raw.websocket?.enabled ?? true,
    websocketIdleMs,
  };
  return {
    name: raw.service,
    ...(raw.team === undefined ? {} : { team: raw.team }),
    hosts,
    protocol: raw.servers?.protocol ?? "http1",
    key,
    ownership: buildOwnership(raw.ownership ?? {}, complain),
    routes: buildRoutes(raw.routes ?? [], defaults, complain),
    replayBytes: raw.body?.replay ?? 1_048_576,
    envelopeBytes: raw.body?.scan ?? 16_384,
    closeCode: raw.websocket?.["close-code"] ?? closeCodeDefault,
  };
}

function buildOwnership(raw: RawOwnership, complain: Complain): Ownership {
  const leaseMs = raw.lease ?? leaseMsDefault;
  const believeMs = raw.believe ?? leaseMs;
  const drainMs = raw.drain ?? drainMsDefault;
  const parkMs = raw.park ?? drainMs + parkBeyondDrainMs;
  if (believeMs > leaseMs) {
    complain(
      ["ownership", "believe"],
      `proxies would believe for ${formatDuration(believeMs)} what servers hold for ${formatDuration(leaseMs)}`,
      `write at most ${formatDuration(leaseMs)}, the lease`,
    );
  }
  if (parkMs <= drainMs) {
    complain(
      ["ownership", "park"],
      `requests are parked for ${formatDuration(parkMs)}, no longer than the old owner may drain (${formatDuration(drainMs)}): moves would lose them`,
      `write more than ${formatDuration(drainMs)}, or a shorter \`drain\``,
    );
  }
  return {
    guard: raw.guard ?? "none",
    placement: raw.placement ?? "least-loaded",
    idleMs: raw.idle ?? 1_800_000,
    leaseMs,
    believeMs,
    drainMs,
    parkMs,
    movesPerSecond: raw["moves-per-second"] ?? 50,
    unknownKeyStatus: raw["unknown-key"] ?? 404,
  };
}

interface RouteDefaults {
  readonly key: KeyRule;
  readonly hosts: readonly string[];
  readonly websocket: boolean;
  readonly websocketIdleMs: number;
}

function buildRoutes(
  raw: readonly RawRoute[],
  defaults: RouteDefaults,
  complain: Complain,
): Route[] {
  if (raw.length > ROUTES_MAX) {
    complain(["routes"], `there are ${raw.length} routes`, `write at most ${ROUTES_MAX}`);
  }
  const routes = raw.map((route, index) =>
    buildRoute(route, ["routes", index], { defaults, complain }),
  );
  const all: RouteMatch = { kind: "prefix", value: "/" };
  if (!routes.some(({ match }) => covers(match, all))) {
    const { key, websocket, websocketIdleMs } = defaults;
    routes.push({
      match: all,
      key,
      timeoutMs: timeoutMsDefault,
      websocket,
      websocketIdleMs,
      path: "",
    });
  }
  for (const [index, route] of routes.entries()) {
    const hiding = routes.slice(0, index).find(({ match }) => covers(match, route.match));
    if (hiding === undefined) continue;
    complain(
      ["routes", index],
      `no request gets here: ${hiding.path} (${hiding.match.kind} ${hiding.match.value}) takes them first`,
      "move it up, or remove it",
    );
  }
  return routes;
}

interface RouteContext {
  readonly defaults: RouteDefaults;
  readonly complain: Complain;
}

function buildRoute(raw: RawRoute, at: MemberPath, { defaults, complain }: RouteContext): Route {
  const match = buildMatch(raw, at, complain);
  const path = memberText(at);
  const base = { match, timeoutMs: raw.timeout ?? timeoutMsDefault, path };
  const websocketIdleMs = raw.websocket?.idle ?? defaults.websocketIdleMs;
  if (raw.respond !== undefined) {
    for (const name of ["key", "timeout", "websocket"] as const) {
      if (raw[name] === undefined) continue;
      complain(
        [...at, name],
        "the edge answers by itself, so this has no effect",
        "remove it, or `respond`",
      );
    }
    const {
      status,
      body = "",
      "content-type": contentType = "text/plain; charset=utf-8",
    } = raw.respond;
    if (body !== "" && (status === 204 || status === 304)) {
      complain([...at, "respond", "body"], `an answer ${status} has no body`, "remove it");
    }
    return {
      ...base,
      respond: { status, body, contentType },
      key: balanced,
      websocket: false,
      websocketIdleMs,
    };
  }
  const key =
    raw.key === undefined ? defaults.key : buildKeyRule(raw.key, [...at, "key"], complain);
  if (raw.key !== undefined) checkHostPlaces(key, defaults.hosts, { at: [...at, "key"], complain });
  if (
    key.noKey === "refuse" &&
    key.places.length > 0 &&
    !key.places.some((p) => mayMatch(p, match))
  ) {
    complain(
      raw.key === undefined ? [...at, "match"] : [...at, "key"],
      `no path of this route fits a place of the key, so every request would be refused (no-key)`,
      "add a place to the route's `key`, or write `key: none`",
    );
  }
  return { ...base, key, websocket: raw.websocket?.enabled ?? defaults.websocket, websocketIdleMs };
}

function buildMatch(raw: RawRoute, at: MemberPath, complain: Complain): RouteMatch {
  const { path, prefix } = raw.match;
  if ((path === undefined) === (prefix === undefined)) {
    complain(
      [...at, "match"],
      path === undefined ? "names neither path nor prefix" : "names both path and prefix",
      "write `path: /exactly/this` or `prefix: /all/below`",
    );
  }
  if (path !== undefined) return { kind: "path", value: path };
  const value = (prefix ?? "/").replace(/(?<=.)\/+$/, "");
  return { kind: "prefix", value };
}

/** False if a path place can find nothing on any path of the route. */
function mayMatch(place: KeyRule["places"][number], match: RouteMatch): boolean {
  if (place.from !== "path") return true;
  const result = parsePathTemplate(place.template);
  if (!result.ok) return true;
  if (match.kind === "path") return matchPath(result.template, match.value) !== undefined;
  const route = match.value === "/" ? "/" : `${match.value}/`;
  const { before } = result.template;
  return before.startsWith(route) || route.startsWith(before);
}

interface HostContext {
  readonly at: MemberPath;
  readonly complain: Complain;
}

function checkHostPlaces(
  rule: KeyRule,
  hosts: readonly string[],
  { at, complain }: HostContext,
): void {
  for (const place of rule.places) {
    if (place.from !== "host") continue;
    const result = parseHostTemplate(place.template);
    if (!result.ok) continue;
    const fits = hosts.some((host) => {
      if (host === "*") return true;
      if (!host.startsWith("*.")) return matchHost(result.template, host) !== undefined;
      return `${result.template.before}x${result.template.after}`.endsWith(host.slice(1));
    });
    if (fits) continue;
    const wildcard = `*${result.template.after}`;
    complain(at, `no host of \`hosts\` fits ${place.template}`, `add "${wildcard}" to \`hosts\``);
  }
}
