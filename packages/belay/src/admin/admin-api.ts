import type { ControlPlane } from "@belay/control-plane";
import { BelayError, type Logger } from "@belay/model";
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { admit, isLoopback } from "./admission.ts";
import { refuseBrokenCall } from "./broken-call.ts";
import { toErrorAnswer } from "./error-answer.ts";
import { toOpenApi } from "./openapi.ts";
import { type Route, textRoute } from "./route.ts";
import { createRoutes } from "./routes.ts";

const bodyBytesMax = 1_048_576;
const connectionsMax = 1000;
const requestMs = 15_000;

export interface AdminApiOptions {
  readonly controlPlane: ControlPlane;
  /** Beyond loopback only with a token. */
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly token?: string;
  /** Of Belay. */
  readonly version: string;
  readonly logger: Logger;
}

export interface RunningAdminApi {
  readonly port: number;
  close(): Promise<void>;
}

/** Serves the admin API. Rejects with `token-needed` or `port-in-use`. */
export async function startAdminApi(options: AdminApiOptions): Promise<RunningAdminApi> {
  const { host, port, token, logger } = options;
  if (token === undefined && !isLoopback(host)) {
    throw new BelayError("token-needed", `the admin API would listen on ${host} without a token`);
  }
  const app = createAdminApi(options);
  try {
    await app.listen({ host, port });
  } catch (cause) {
    await app.close();
    const inUse = cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE";
    if (!inUse) throw cause;
    throw new BelayError("port-in-use", `the admin API cannot listen on ${host}:${port}`, {
      cause,
    });
  }
  const address = app.server.address();
  const bound = address !== null && typeof address === "object" ? address.port : port;
  logger.info({ port: bound }, "admin API");
  return { port: bound, close: () => app.close() };
}

/** All routes, /openapi.json too. */
export function createAllRoutes(context: Parameters<typeof createRoutes>[0]): readonly Route[] {
  const routes = createRoutes(context);
  const description: Route = textRoute({
    path: "/openapi.json",
    summary: "this API, as OpenAPI 3.1",
    contentType: "application/json",
    handle: () =>
      Promise.resolve(JSON.stringify(toOpenApi([...routes, description], context.version))),
  });
  return [...routes, description];
}

/** `/v1/services/:name` of `/v1/services/{name}`; a colon of ours is doubled. */
const toFastifyPath = (path: string): string =>
  path.replaceAll(":", "::").replaceAll(/\{(\w+)\}/g, ":$1");

/** The API without its listener. */
function createAdminApi(options: AdminApiOptions): FastifyInstance {
  const { controlPlane, version, host, token, logger } = options;
  const enter = (request: FastifyRequest, reply: FastifyReply): void => {
    reply.header("cache-control", "no-store").header("x-content-type-options", "nosniff");
    admit(request.headers, { host, token }, request.url === "/healthz");
  };
  const sendError = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const { status, body } = toErrorAnswer(error);
    if (body.code === "internal") {
      const stack = error instanceof Error ? error.stack : String(error);
      logger.error({ method: request.method, url: request.url, stack }, "admin API: a fault");
    }
    return reply.code(status).send(body);
  };
  const app = fastify({
    bodyLimit: bodyBytesMax,
    requestTimeout: requestMs,
    forceCloseConnections: true,
    exposeHeadRoutes: false,
    clientErrorHandler: refuseBrokenCall,
    // What is refused before a route is looked for: no hook runs and no error handler is asked.
    frameworkErrors(error, request, reply) {
      try {
        enter(request, reply);
        sendError(error, request, reply);
      } catch (refusal) {
        sendError(refusal, request, reply);
      }
    },
  });
  app.server.maxConnections = connectionsMax;
  // JSON only: a form or text body is what a foreign page could send without asking.
  app.removeContentTypeParser("text/plain");
  app.addHook("onRequest", async (request, reply) => enter(request, reply));
  app.setErrorHandler(sendError);
  app.setNotFoundHandler((request) => {
    throw new BelayError(
      "route-unknown",
      `there is no ${request.method} ${request.url.slice(0, 200)}`,
    );
  });
  for (const route of createAllRoutes({ controlPlane, version })) {
    app.route({
      method: route.method,
      url: toFastifyPath(route.path),
      async handler({ params, query, body }, reply) {
        const answer = await route.handle({ params, query, body });
        return reply.code(route.status).type(route.contentType).send(answer);
      },
    });
  }
  return app;
}
