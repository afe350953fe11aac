import { readFileSync } from "node:fs";
import { toBootstrap } from "@belay/xds/bootstrap";
import { MODULE_NAME } from "./module-name.ts";
import type { SocketAddress } from "../machine/socket-address.ts";

const CONNECTIONS_DEFAULT = 32_768;
const CONNECTIONS_MIN = 128;

/** What one edge's bootstrap depends on. */
export interface BootstrapInput {
  readonly name: string;
  readonly pool: string;
  readonly edge: SocketAddress;
  readonly envoyAdminPort: number;
  readonly coordinator: SocketAddress;
  readonly xds: SocketAddress;
  readonly maxWaitMs: number;
  readonly tokenFile: string | undefined;
  readonly hugePages: boolean;
}

/** The JSON of an edge's bootstrap. */
export function createBootstrapText(input: BootstrapInput): string {
  const { name, pool, edge, coordinator, xds, maxWaitMs, tokenFile, hugePages } = input;
  const bootstrap = toBootstrap({
    name,
    pool,
    edge: { address: edge.host, port: edge.port },
    admin: { address: "127.0.0.1", port: input.envoyAdminPort },
    controlPlane: { address: xds.host, port: xds.port },
    module: { name: MODULE_NAME },
    coordinator: { address: coordinator.host, port: coordinator.port },
    maxWaitMs,
    ...(tokenFile === undefined ? {} : { tokenFile }),
    hugePages,
    connectionsMax: countConnectionsMax(),
  });
  return `${JSON.stringify(bootstrap, null, 2)}\n`;
}

/** Half of the open files that the kernel allows: each client has a connection to a server. */
function countConnectionsMax(): number {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const soft = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.NaN);
  if (!Number.isFinite(soft)) return CONNECTIONS_DEFAULT;
  return Math.max(CONNECTIONS_MIN, Math.floor(soft / 2));
}
