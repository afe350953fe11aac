import { connect } from "node:net";
import type { StatusView } from "../admin/schemas.ts";
import { ApiClient } from "../cli/api-client.ts";
import { CliFailure } from "../cli/cli-failure.ts";
import { describeListener } from "../machine/listening-sockets.ts";
import { type CheckResult, failed, ok, warning } from "./check-result.ts";
import type { DoctorSettings } from "./doctor-settings.ts";

const CONNECT_MS_MAX = 1000;

/** Whether core and its coordinator answer; that nothing runs is only said. */
export async function checkApi(settings: DoctorSettings): Promise<CheckResult[]> {
  const { api, tokenFile } = settings;
  let status: StatusView;
  try {
    const client = new ApiClient({ api, ...(tokenFile === undefined ? {} : { tokenFile }) });
    status = await client.get("/v1/status", (it) => it.statusSchema);
  } catch (error) {
    const advice = error instanceof CliFailure ? error.advice.join(" ") : "";
    const found = error instanceof Error ? error.message : String(error);
    return [warning("admin API", found, advice)];
  }
  const { coordinator, controlPlane } = status;
  return [
    ok("admin API", `${api}, version ${status.version}, ${controlPlane.state}`),
    coordinator.connected
      ? ok(
          "coordinator",
          `${coordinator.address}, connected; revision ${coordinator.revision ?? "?"} is its last change`,
        )
      : failed(
          "coordinator",
          `${coordinator.address}: ${coordinator.problem}`,
          "Start it (`belay core --roles coordinator`); everything connects again by itself.",
        ),
    controlPlane.alarm === ""
      ? ok(
          "service files",
          `${controlPlane.services} served, ${controlPlane.refused} with problems`,
        )
      : failed("service files", controlPlane.alarm, "See `belay get services`."),
  ];
}

/** Who has each of our ports: free, or in use and by whom. */
export async function checkPorts(settings: DoctorSettings): Promise<CheckResult[]> {
  const ports = [
    ["edge", settings.edgePort, "BELAY_EDGE_PORT"],
    ["admin API", settings.apiPort, "BELAY_API_PORT"],
    ["coordinator", settings.coordinatorPort, "BELAY_COORDINATOR_PORT"],
    ["xDS", settings.xdsPort, "BELAY_XDS_PORT"],
    ["Envoy admin", settings.envoyAdminPort, "BELAY_ENVOY_ADMIN_PORT"],
  ] as const;
  return Promise.all(
    ports.map(async ([what, port, env]) => {
      const name = `port ${port}`;
      const holder = describeListener(port);
      if (holder === undefined) return ok(name, `free, for ${what}`);
      const ours = /belay|envoy/.test(holder);
      if (ours && (await accepts(port))) return ok(name, `${what}: ${holder}`);
      return warning(name, `${what}: in use by ${holder}`, `${env} chooses another port.`);
    }),
  );
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect({ host: "127.0.0.1", port });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once("connect", () => resolve(true));
  socket.once("error", () => resolve(false));
  socket.setTimeout(CONNECT_MS_MAX, () => resolve(false));
  const answer = await promise;
  socket.destroy();
  return answer;
}
