import { once } from "node:events";
import { createServer } from "node:http";
import type { Logger } from "@belay/model";
import { requireFreePort } from "../machine/free-port.ts";

const HEADERS_MS_MAX = 5000;
const CONNECTIONS_MAX = 100;

export interface HealthEndpointOptions {
  readonly host: string;
  /** What the command line said; undefined: `fallbackPort`, and none if that is in use. */
  readonly port: number | undefined;
  readonly fallbackPort: number;
  /** Whose `--metrics-port` it is: `belay up` has none. */
  readonly command: "belay core" | "belay proxy";
  readonly logger: Logger;
  /** JSON of /healthz; `ok: false` is a 503. */
  health(): Promise<{ readonly ok: boolean } & Readonly<Record<string, string | number | boolean>>>;
  /** Prometheus text. */
  metrics(): Promise<string>;
}

/** Serves /healthz and /metrics, nothing else. Answers what stops it. */
export async function startHealthEndpoint(
  options: HealthEndpointOptions,
): Promise<{ close(): void }> {
  const { host, logger } = options;
  const port = options.port ?? options.fallbackPort;
  const server = createServer({ headersTimeout: HEADERS_MS_MAX }, (request, response) => {
    const path = (request.url ?? "").split("?")[0];
    const answer = (status: number, type: string, body: string): void => {
      response.writeHead(status, { "content-type": type, "cache-control": "no-store" }).end(body);
    };
    if (path === "/healthz") {
      options.health().then(
        (health) =>
          answer(health.ok ? 200 : 503, "application/json", `${JSON.stringify(health)}\n`),
        (error: unknown) => answer(503, "text/plain", `${String(error)}\n`),
      );
    } else if (path === "/metrics") {
      options.metrics().then(
        (text) => answer(200, "text/plain; version=0.0.4; charset=utf-8", text),
        (error: unknown) => answer(503, "text/plain", `${String(error)}\n`),
      );
    } else {
      answer(404, "text/plain", "only /healthz and /metrics are here\n");
    }
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.listen({ host, port });
  try {
    await once(server, "listening");
  } catch (cause) {
    const what = "/healthz and /metrics";
    const inUse = cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE";
    if (!inUse) throw cause;
    if (options.port !== undefined) {
      await requireFreePort({ what, host, port, env: "BELAY_METRICS_PORT" });
    }
    const other = `\`${options.command} --metrics-port\` chooses another`;
    logger.warn({ port }, `${what} are off, all else works: the port is in use; ${other}`);
    return { close: () => undefined };
  }
  const address = server.address();
  if (address !== null && typeof address === "object") {
    logger.info({ port: address.port }, "/healthz and /metrics");
  }
  return {
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
