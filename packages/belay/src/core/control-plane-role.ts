import { createControlPlane } from "@belay/control-plane";
import { createBootClock, createSystemRandom } from "@belay/protocol";
import { resolve } from "node:path";
import { startAdminApi } from "../admin/admin-api.ts";
import { readVersion } from "../cli/version.ts";
import { requireFreePort } from "../machine/free-port.ts";
import { dialHost } from "../machine/loopback.ts";
import { formatSocketAddress, parseSocketAddress } from "../machine/socket-address.ts";
import { MODULE_NAME } from "../proxy/module-name.ts";
import type { RoleContext, RunningRole } from "./running-role.ts";

const POOL = "default";

/** Control plane, xDS and admin API. Fails with a BelayError that says what to do. */
export async function startControlPlaneRole(context: RoleContext): Promise<RunningRole> {
  const { settings, data, token, logger } = context;
  const { bind: host, xdsPort, apiPort, coordinatorPort, services } = settings;
  await requireFreePort({ what: "xDS", host, port: xdsPort, env: "BELAY_XDS_PORT" });
  await requireFreePort({ what: "the admin API", host, port: apiPort, env: "BELAY_API_PORT" });
  const version = readVersion();
  const controlPlane = createControlPlane({
    data,
    ...(services === undefined ? {} : { services: resolve(services) }),
    coordinator: parseSocketAddress(
      settings.coordinator ?? formatSocketAddress({ host: dialHost(host), port: coordinatorPort }),
      "--coordinator (BELAY_COORDINATOR)",
    ),
    ...(token === undefined ? {} : { token }),
    xds: { host, port: xdsPort },
    pool: POOL,
    module: { name: MODULE_NAME },
    accessLog: settings.accessLog,
    software: `belay ${version}`,
    clock: createBootClock(),
    random: createSystemRandom(),
    logger,
    wallClock: () => Date.now(),
  });
  await controlPlane.start();
  const api = await startAdminApi({
    controlPlane,
    host,
    port: apiPort,
    ...(token === undefined ? {} : { token }),
    version,
    logger,
  });
  return {
    close: async () => {
      await api.close();
      await controlPlane.stop();
    },
  };
}
