import { reasonTable, type ReasonCode } from "../error/reason-table.ts";
import { dropLastDot, dropPort } from "../key/host-template.ts";
import { positionOf } from "../service-file/link.ts";
import { formatMatch, matchesRoute } from "../service-file/route-match.ts";
import type { Position, Route, Service } from "../service-file/service.ts";
import { normalizePath } from "./edge-path.ts";
import { extractKey, type Extraction, type RequestHead } from "./place-finder.ts";
import { formatKeyRule, formatPlace } from "./place-text.ts";

export interface ExplainInput {
  readonly method: string;
  /** Absolute (`http://host/path`), or a path with a Host header. */
  readonly url: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export interface Explanation {
  /**
   * `forward`: to the owner of `key`, to `server`, or balanced. `need-body`: an envelope decides.
   * `refuse`: the edge answers `reason`. `respond`: the file has the answer. `no-service`: 404.
   */
  readonly outcome: "forward" | "need-body" | "refuse" | "respond" | "no-service";
  readonly host: string;
  /** As the edge reads it: normalised, with its query. */
  readonly path: string;
  readonly service?: string;
  readonly route?: { readonly match: string; readonly file: string } & Position;
  readonly key?: string;
  readonly server?: string;
  /** The place that gave key or server, or the fault, in words. */
  readonly from?: string;
  readonly reason?: ReasonCode;
  readonly status?: number;
  /** Path that the server sees. */
  readonly upstreamPath: string;
  /** One line per step, for people. */
  readonly steps: readonly string[];
}

/** What an edge does with a request, by the same rules as the module's; never throws. */
export function explain(services: readonly Service[], input: ExplainInput): Explanation {
  const sent = readRequest(input);
  const authority = dropLastDot(sent.authority);
  // Envoy matches hosts without their port and without case.
  const host = dropPort(authority).toLowerCase();
  const path = normalizePath(sent.path);
  if (path === undefined) {
    const steps = [`path ${sent.path}: Envoy cannot read it (%00)`, "answered 400"];
    const base = { host, path: sent.path, upstreamPath: sent.path };
    return { ...base, outcome: "refuse", status: 400, steps };
  }
  const request = { ...sent, authority, path };
  const base = { host, path, upstreamPath: path };
  const service = serviceOf(services, host);
  const plain = request.path.split(/[?#]/, 1)[0] ?? "/";
  const route = service?.routes.find(({ match }) => matchesRoute(match, plain));
  if (service === undefined || route === undefined) {
    const steps = [`host ${host || "(none)"}: no service has it`, "answered 404"];
    return { ...base, outcome: "no-service", status: 404, steps };
  }
  const { file } = service.source;
  const position = positionOf(service, route.path === "" ? "service" : route.path);
  const match = formatMatch(route.match);
  const steps = [
    `host ${host || "(none)"}: service ${service.name}`,
    ...(path === sent.path ? [] : [`path ${sent.path}: normalised to ${path}`]),
    `path ${plain}: route ${match} (${file}:${position.line}${route.path === "" ? ", the implicit last route" : ""})`,
  ];
  const known = { ...base, service: service.name, route: { match, file, ...position } };
  if (route.respond !== undefined) {
    const { status } = route.respond;
    return {
      ...known,
      outcome: "respond",
      status,
      steps: [...steps, `answered ${status} by the edge`],
    };
  }
  steps.push(`key: ${formatKeyRule(route.key).join(", ")}`);
  return { ...known, ...judge(extractKey(route.key, request), route, steps) };
}

type Verdict = Pick<Explanation, "outcome" | "steps"> & Partial<Explanation>;

function judge(found: Extraction, route: Route, steps: readonly string[]): Verdict {
  if (found.kind === "refused") return refuse(found.reason, formatPlace(found.from), steps);
  if (found.kind === "need-body") {
    const step = "no key in the head: the envelope in the body decides";
    return { outcome: "need-body", steps: [...steps, step] };
  }
  if (found.kind === "none") {
    if (route.key.noKey === "refuse") return refuse("no-key", undefined, steps);
    const mints = route.key.minted === undefined ? "" : ", and the server's answer mints one";
    return {
      outcome: "forward",
      steps: [...steps, `no key: balanced over active servers${mints}`],
    };
  }
  const from = formatPlace(found.from);
  const base = { outcome: "forward", from, upstreamPath: found.path } as const;
  if (found.kind === "server") {
    const step = `server "${found.id}" from ${from}: to that server only`;
    return { ...base, server: found.id, steps: [...steps, step] };
  }
  const step = `key "${found.key}" from ${from}: to its owner`;
  return { ...base, key: found.key, steps: [...steps, step] };
}

function refuse(reason: ReasonCode, from: string | undefined, steps: readonly string[]): Verdict {
  const { http: status, says } = reasonTable[reason];
  const step = `refused ${status} ${reason}: ${says}${from === undefined ? "" : ` (${from})`}`;
  const named = from === undefined ? {} : { from };
  return { outcome: "refuse", reason, status, ...named, steps: [...steps, step] };
}

/** Exact host first, then the longest `*.suffix`, then `*`. */
function serviceOf(services: readonly Service[], host: string): Service | undefined {
  let best: Service | undefined;
  let length = -1;
  for (const service of services) {
    for (const pattern of service.hosts) {
      const fits =
        pattern === "*" ||
        pattern === host ||
        (pattern.startsWith("*.") &&
          host.endsWith(pattern.slice(1)) &&
          host.length >= pattern.length);
      const weight =
        pattern === "*" ? 0 : pattern === host ? Number.MAX_SAFE_INTEGER : pattern.length;
      if (fits && weight > length) {
        best = service;
        length = weight;
      }
    }
  }
  return best;
}

function readRequest({ url, headers }: ExplainInput): RequestHead {
  const lower = headers.map(([name, value]) => [name.toLowerCase(), value] as const);
  const named = lower.find(([name]) => name === "host" || name === ":authority")?.[1];
  const [, authority, rest] =
    /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#]*)(.*)$/is.exec(url) ?? [];
  const target = rest ?? url;
  // A fragment never leaves the client.
  const path = target.split("#", 1)[0] ?? "";
  return {
    authority: named ?? authority ?? "",
    path: path.startsWith("/") ? path : `/${path}`,
    headers: lower,
  };
}
