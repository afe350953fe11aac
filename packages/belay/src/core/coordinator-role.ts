import { join } from "node:path";
import { startCoordinator } from "@belay/coordinator";
import { errorTable, exitCodes, isErrorCode } from "@belay/model";
import { createBootClock, createSystemRandom } from "@belay/protocol";
import { openSqliteStore } from "@belay/store-sqlite";
import { requireFreePort } from "../machine/free-port.ts";
import { startHealthEndpoint } from "../process/health-endpoint.ts";
import type { RoleContext, RunningRole } from "./running-role.ts";

const METRICS_PORT = 8803;

/** The coordinator on its SQLite store. Fails with a BelayError that says what to do. */
export async function startCoordinatorRole(context: RoleContext): Promise<RunningRole> {
  const { settings, data, token, logger } = context;
  const { bind: host, coordinatorPort: port } = settings;
  await requireFreePort({ what: "the coordinator", host, port, env: "BELAY_COORDINATOR_PORT" });
  const random = createSystemRandom();
  const store = openSqliteStore({ directory: join(data, "coordinator"), random });
  const coordinator = await startCoordinator({
    store,
    clock: createBootClock(),
    random,
    logger,
    listen: { host, port },
    ...(token === undefined ? {} : { token }),
    onExit: ({ code }) =>
      context.fail(isErrorCode(code) ? errorTable[code].exit : exitCodes.failed),
  });
  const endpoint = await startHealthEndpoint({
    host,
    port: settings.metricsPort,
    fallbackPort: METRICS_PORT,
    command: "belay core",
    logger,
    health: async () => ({ ok: true, role: "coordinator" }),
    metrics: async () => coordinator.metrics(),
  });
  return {
    close: async () => {
      endpoint.close();
      await coordinator.close();
      await store.close();
    },
  };
}
