import { connect } from "node:net";
import { ApiClient } from "../cli/api-client.ts";
import { dialHost } from "../machine/loopback.ts";
import { EnvoyAdmin } from "../proxy/envoy-admin.ts";
import type { Demo } from "./demo.ts";
import type { UpSettings } from "./up-settings.ts";

const PROBE_MS_MAX = 1000;
const EDGE_DRAIN = "2s";

/** A process of `belay up`: how it is started, and how one sees that it is ready. */
export interface PlannedProcess {
  readonly name: string;
  readonly command: readonly [program: string, ...args: string[]];
  readonly env: Readonly<Record<string, string>>;
  /** Its death ends everything; a server of the demo is only reported. */
  readonly vital: boolean;
  /** Place in the order of stopping: lowest first. */
  readonly stopRank: number;
  isReady(): Promise<boolean>;
}

/** The processes in the order in which they start; those of one group start together. */
export function planProcesses(
  settings: UpSettings,
  data: string,
  demo: Demo | undefined,
): readonly (readonly PlannedProcess[])[] {
  const env = commonEnv(settings, data);
  const core = (role: string): PlannedProcess["command"] =>
    belay(settings, ["core", "--roles", role]);
  const coordinator: PlannedProcess = {
    name: "coordinator",
    command: core("coordinator"),
    env,
    vital: true,
    stopRank: 3,
    isReady: async () => accepts(dialHost(settings.bind), settings.coordinatorPort),
  };
  const own = settings.services === undefined ? [] : ["--services", settings.services];
  const controlPlane: PlannedProcess = {
    name: "control-plane",
    command: [...core("control-plane"), ...own],
    env,
    vital: true,
    stopRank: 2,
    isReady: async () => answersOk(`${apiUrl(settings)}/healthz`),
  };
  const edge: PlannedProcess = {
    name: "edge",
    command: belay(settings, ["proxy", "--name", "edge-1", "--drain-time", EDGE_DRAIN]),
    env,
    vital: true,
    stopRank: 0,
    isReady: async () => new EnvoyAdmin(settings.envoyAdminPort).isReady(),
  };
  const servers = demo === undefined ? [] : planServers(settings, env, demo);
  // The first two find each other by themselves, in whichever order they come up; and what would
  // come after them is spared a few seconds of trying.
  return [
    [coordinator, controlPlane],
    [edge, ...servers],
  ];
}

function planServers(
  settings: UpSettings,
  env: Readonly<Record<string, string>>,
  demo: Demo,
): PlannedProcess[] {
  return demo.serverIds.map((id) => ({
    name: id,
    command: [process.execPath, ...process.execArgv, demo.serverProgram],
    env: {
      ...env,
      BELAY_SERVER_ID: id,
      BELAY_SERVICE: demo.service,
      BELAY_EDGE_URL: `http://${dialHost(settings.bind)}:${settings.edgePort}`,
      PORT: "auto",
      HOST: "127.0.0.1",
    },
    vital: false,
    stopRank: 1,
    isReady: async () => isRegistered(settings, demo.service, id),
  }));
}

export function apiUrl(settings: UpSettings): string {
  return `http://${dialHost(settings.bind)}:${settings.apiPort}`;
}

function belay(settings: UpSettings, args: readonly string[]): PlannedProcess["command"] {
  const main = process.argv[1] ?? "";
  const log = ["--log-level", settings.logLevel, "--log-format", settings.logFormat];
  return [process.execPath, ...process.execArgv, main, ...args, ...log];
}

function commonEnv(settings: UpSettings, data: string): Readonly<Record<string, string>> {
  return {
    BELAY_BIND: settings.bind,
    BELAY_DATA: data,
    BELAY_EDGE_PORT: String(settings.edgePort),
    BELAY_API_PORT: String(settings.apiPort),
    BELAY_COORDINATOR_PORT: String(settings.coordinatorPort),
    BELAY_COORDINATOR: `${dialHost(settings.bind)}:${settings.coordinatorPort}`,
    BELAY_XDS_PORT: String(settings.xdsPort),
    BELAY_XDS: `${dialHost(settings.bind)}:${settings.xdsPort}`,
    BELAY_ENVOY_ADMIN_PORT: String(settings.envoyAdminPort),
    BELAY_API: apiUrl(settings),
    ...(settings.tokenFile === undefined ? {} : { BELAY_TOKEN_FILE: settings.tokenFile }),
    ...(settings.envoy === undefined ? {} : { BELAY_ENVOY: settings.envoy }),
  };
}

async function accepts(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  try {
    return await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
      socket.setTimeout(PROBE_MS_MAX, () => resolve(false));
    });
  } finally {
    socket.destroy();
  }
}

async function answersOk(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_MS_MAX) });
  await response.text();
  return response.ok;
}

/** True once the coordinator knows the server as active. */
async function isRegistered(settings: UpSettings, service: string, id: string): Promise<boolean> {
  const { tokenFile } = settings;
  const client = new ApiClient({
    api: apiUrl(settings),
    ...(tokenFile === undefined ? {} : { tokenFile }),
  });
  const view = await client.get("/v1/servers", (it) => it.serversSchema, { service });
  return view.servers.some((it) => it.id === id && it.state === "active" && it.connected);
}
