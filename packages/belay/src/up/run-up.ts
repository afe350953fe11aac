import { exitCodes } from "@belay/model";
import { openDataFolder } from "../machine/data-folder.ts";
import { requireFreePort } from "../machine/free-port.ts";
import { readToken } from "../machine/loopback.ts";
import { StopSignal } from "../process/stop-signal.ts";
import { findEnvoy, findExec, findModule, requireEnvoyVersion } from "../proxy/envoy-files.ts";
import { findDemo, seedServices } from "./demo.ts";
import { createLinePrinter } from "./line-printer.ts";
import { planProcesses } from "./plan.ts";
import { printReady } from "./ready-message.ts";
import { Supervisor } from "./supervisor.ts";
import type { UpSettings } from "./up-settings.ts";

/**
 * Runs coordinator, control plane, edge and the demo's servers until Ctrl-C or SIGTERM, then stops
 * them in order. Settles with 0 after a stop that was wished for; if a part of Belay died with 7 when
 * the machine is not as needed, else with 1.
 */
export async function runUp(settings: UpSettings): Promise<number> {
  readToken(settings.bind, settings.tokenFile);
  await requireEnvoyVersion(findEnvoy(settings.envoy));
  findModule(undefined);
  const exec = findExec();
  const data = openDataFolder(settings.data);
  const demo = settings.demo === true ? findDemo() : undefined;
  if (demo !== undefined && settings.services === undefined) seedServices(data, demo);
  await requirePorts(settings);

  const print = createLinePrinter(settings.logFormat);
  const supervisor = new Supervisor(exec, print);
  const stop = new StopSignal();
  void stop.forced.then(() => {
    supervisor.kill();
    process.exit(1);
  });
  const groups = planProcesses(settings, data, demo);
  const broken = Promise.withResolvers<never>();
  supervisor
    .start(groups)
    .then(async (ready) => (ready ? printReady(settings, demo) : undefined))
    .catch(broken.reject);
  try {
    const why = await Promise.race([stop.stopped, supervisor.vitalDeath, broken.promise]);
    if (typeof why === "number") return why === exitCodes.environment ? why : exitCodes.failed;
    print("belay", `${why}: everything stops, in order; again: at once`);
    return 0;
  } finally {
    await supervisor.stop();
    if (stop.wanted) print("belay", "stopped");
  }
}

async function requirePorts(settings: UpSettings): Promise<void> {
  const host = settings.bind;
  const wanted = [
    { what: "the edge", host, port: settings.edgePort, env: "BELAY_EDGE_PORT" },
    { what: "the admin API", host, port: settings.apiPort, env: "BELAY_API_PORT" },
    {
      what: "the coordinator",
      host,
      port: settings.coordinatorPort,
      env: "BELAY_COORDINATOR_PORT",
    },
    { what: "xDS", host, port: settings.xdsPort, env: "BELAY_XDS_PORT" },
    {
      what: "Envoy's admin interface",
      host: "127.0.0.1",
      port: settings.envoyAdminPort,
      env: "BELAY_ENVOY_ADMIN_PORT",
    },
  ];
  await Promise.all(wanted.map(requireFreePort));
}
