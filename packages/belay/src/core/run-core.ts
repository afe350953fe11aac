import { openDataFolder } from "../machine/data-folder.ts";
import { readToken } from "../machine/loopback.ts";
import { createProcessLogger } from "../log/process-logger.ts";
import { StopSignal } from "../process/stop-signal.ts";
import type { CoreSettings } from "./core-settings.ts";
import type { RoleContext, RunningRole } from "./running-role.ts";

/**
 * Runs coordinator, control plane or both until SIGTERM or SIGINT, then ends them in the opposite
 * order. Settles with 0, or with the exit code of what went wrong.
 */
export async function runCore(settings: CoreSettings): Promise<number> {
  const stop = new StopSignal();
  void stop.forced.then(() => process.exit(1));
  const logger = createProcessLogger(settings.logLevel, settings.logFormat);
  const token = readToken(settings.bind, settings.tokenFile);
  const data = openDataFolder(settings.data);
  const failed = Promise.withResolvers<number>();
  const context: RoleContext = { settings, data, token, logger, fail: failed.resolve };
  const running: RunningRole[] = [];
  try {
    // Loaded only where they run: the start of a demo should not take longer than it must.
    if (settings.roles.includes("coordinator")) {
      const { startCoordinatorRole } = await import("./coordinator-role.ts");
      running.push(await startCoordinatorRole(context));
    }
    if (settings.roles.includes("control-plane")) {
      const { startControlPlaneRole } = await import("./control-plane-role.ts");
      running.push(await startControlPlaneRole(context));
    }
    return await Promise.race([stop.stopped.then(() => 0), failed.promise]);
  } finally {
    await closeAll(running.toReversed());
    logger.info({}, "stopped");
  }
}

async function closeAll([first, ...rest]: readonly RunningRole[]): Promise<void> {
  if (first === undefined) return;
  await first.close();
  await closeAll(rest);
}
