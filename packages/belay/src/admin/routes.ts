import type { ControlPlane } from "@belay/control-plane";
import { BelayError, isKey } from "@belay/model";
import { ask, toCoordinatorStatus, toServerView, toShardView } from "./coordinator-view.ts";
import { toExplainView } from "./explain-view.ts";
import { toProxiesView } from "./proxy-view.ts";
import { jsonRoute, type Route, textRoute } from "./route.ts";
import * as schemas from "./schemas.ts";
import { toServicesView } from "./service-view.ts";

export interface RouteContext {
  readonly controlPlane: ControlPlane;
  /** Of Belay. */
  readonly version: string;
}

/** Every route of the admin API but /openapi.json, which is made of this list. */
export const createRoutes = (context: RouteContext): readonly Route[] => [
  ...processRoutes(context),
  ...serviceRoutes(context),
  ...fleetRoutes(context),
  ...orderRoutes(context),
];

/** The key, if it is one; else throws `bad-key`. */
function requireKey(key: string): string {
  if (isKey(key)) return key;
  const shown = JSON.stringify(key.slice(0, 100));
  throw new BelayError(
    "bad-key",
    `${shown} is not 1-256 bytes of UTF-8 without control characters`,
  );
}

function processRoutes({ controlPlane, version }: RouteContext): Route[] {
  return [
    jsonRoute({
      method: "GET",
      path: "/healthz",
      summary: "200 while the process serves",
      answer: schemas.healthSchema,
      handle: () => ({ ok: true as const, role: "control-plane" as const }),
    }),
    textRoute({
      path: "/metrics",
      summary: "Prometheus text",
      contentType: "text/plain; version=0.0.4; charset=utf-8",
      handle: () => controlPlane.metrics(),
    }),
    jsonRoute({
      method: "GET",
      path: "/v1/status",
      summary: "control plane and coordinator",
      answer: schemas.statusSchema,
      async handle() {
        const { upMs, state, alarm, coordinator } = controlPlane.status();
        return {
          version,
          controlPlane: {
            upMs,
            state,
            endpoints: coordinator.feed,
            services: controlPlane.served().length,
            refused: controlPlane.book().files.filter((it) => it.state !== "serving").length,
            nacks: controlPlane.rejections().length,
            proxies: controlPlane.proxies().length,
            alarm,
          },
          coordinator: await toCoordinatorStatus(controlPlane),
        };
      },
    }),
  ];
}

function serviceRoutes({ controlPlane }: RouteContext): Route[] {
  const serviceOf = (name: string) => {
    const found = toServicesView(controlPlane).services.find((it) => it.name === name);
    if (found === undefined) throw new BelayError("service-unknown", `there is no service ${name}`);
    return found;
  };
  return [
    jsonRoute({
      method: "GET",
      path: "/v1/services",
      summary: "all services, with the problems of their files and what proxies refuse",
      answer: schemas.servicesSchema,
      handle: () => toServicesView(controlPlane),
    }),
    jsonRoute({
      method: "GET",
      path: "/v1/services/{name}",
      summary: "one service",
      params: schemas.nameParamsSchema,
      answer: schemas.serviceSchema,
      handle: ({ params }) => serviceOf(params.name),
    }),
    jsonRoute({
      method: "POST",
      path: "/v1/services:check",
      summary:
        "all problems of service files, alone, beside each other and beside what is served; changes nothing",
      body: schemas.checkRequestSchema,
      answer: schemas.checkSchema,
      handle({ body }) {
        const files = body.files.map(({ file, yaml }) => ({ file, text: yaml }));
        const { services, problems } = controlPlane.check(files);
        return {
          ok: problems.every(({ severity }) => severity !== "error"),
          services: services.map(({ name }) => name),
          problems: [...problems],
        };
      },
    }),
    jsonRoute({
      method: "PUT",
      path: "/v1/services/{name}",
      summary: "writes the service's file, if it is good alone and beside the other services",
      params: schemas.nameParamsSchema,
      body: schemas.applyRequestSchema,
      answer: schemas.applySchema,
      async handle({ params, body }) {
        const { changed, file } = await controlPlane.apply(params.name, body.yaml, body.file);
        return { changed, file, service: serviceOf(params.name) };
      },
    }),
    jsonRoute({
      method: "DELETE",
      path: "/v1/services/{name}",
      summary: "removes the service and its file",
      params: schemas.nameParamsSchema,
      answer: schemas.removedSchema,
      async handle({ params }) {
        await controlPlane.remove(params.name);
        return { removed: params.name };
      },
    }),
  ];
}

function fleetRoutes({ controlPlane }: RouteContext): Route[] {
  return [
    jsonRoute({
      method: "GET",
      path: "/v1/servers",
      summary: "registered servers",
      query: schemas.serversQuerySchema,
      answer: schemas.serversSchema,
      async handle({ query }) {
        const value = { service: query.service ?? "" };
        const { servers } = await ask(controlPlane, { case: "servers", value }, "servers");
        return { servers: servers.map(toServerView) };
      },
    }),
    jsonRoute({
      method: "GET",
      path: "/v1/shards",
      summary: "keys with an owner, page by page in byte order of the key",
      query: schemas.shardsQuerySchema,
      answer: schemas.shardsSchema,
      async handle({ query }) {
        const { service, server = "", after = "", limit } = query;
        const afterKey = after === "" ? "" : requireKey(after);
        const value = { service, serverId: server, afterKey, limit };
        const { shards, more } = await ask(controlPlane, { case: "shards", value }, "shards");
        const next = more ? shards.at(-1)?.key : undefined;
        return { shards: shards.map(toShardView), ...(next === undefined ? {} : { next }) };
      },
    }),
    jsonRoute({
      method: "GET",
      path: "/v1/proxies",
      summary: "proxies, as the coordinator and the xDS server see them",
      answer: schemas.proxiesSchema,
      handle: () => toProxiesView(controlPlane),
    }),
    jsonRoute({
      method: "GET",
      path: "/v1/owner",
      summary: "who owns a key; places nothing",
      query: schemas.ownerQuerySchema,
      answer: schemas.shardSchema,
      async handle({ query }) {
        const value = { service: query.service, key: requireKey(query.key) };
        return toShardView(await ask(controlPlane, { case: "owner", value }, "owner"));
      },
    }),
    jsonRoute({
      method: "POST",
      path: "/v1/explain",
      summary: "what an edge would do with a request, and why; sends nothing, places nothing",
      body: schemas.explainRequestSchema,
      answer: schemas.explainSchema,
      handle: ({ body }) => toExplainView(controlPlane, body),
    }),
  ];
}

function orderRoutes({ controlPlane }: RouteContext): Route[] {
  return [
    jsonRoute({
      method: "POST",
      path: "/v1/moves",
      summary: "moves a key, to a server or by placement; follow it with GET /v1/owner",
      status: 202,
      body: schemas.moveRequestSchema,
      answer: schemas.moveSchema,
      async handle({ body }) {
        const key = requireKey(body.key);
        const value = { service: body.service, key, toServerId: body.to ?? "" };
        const move = await ask(controlPlane, { case: "move", value }, "move");
        return { revision: String(move.revision), from: move.fromServerId };
      },
    }),
    jsonRoute({
      method: "POST",
      path: "/v1/drains",
      summary: "drains a server; follow it with GET /v1/servers",
      status: 202,
      body: schemas.drainRequestSchema,
      answer: schemas.drainSchema,
      async handle({ body }) {
        const value = { service: body.service ?? "", serverId: body.server };
        const { service, serverId, remaining } = await ask(
          controlPlane,
          { case: "drain", value },
          "drain",
        );
        return { service, server: serverId, remaining };
      },
    }),
  ];
}
