import { EXIT } from "../cli/exit-code.ts";
import { paint, printJson } from "../cli/printer.ts";
import { createBootstrapText } from "../proxy/bootstrap.ts";
import type { CheckResult } from "./check-result.ts";
import type { DoctorSettings } from "./doctor-settings.ts";
import { checkEnvoy, checkExec, checkModule } from "./envoy-checks.ts";
import { checkClock, checkDataFolder, checkFileLimit, checkNode } from "./machine-checks.ts";
import { checkApi, checkPorts } from "./network-checks.ts";

const MARK = { ok: "✓", warning: "!", failed: "✗" } as const;
const COLOUR = { ok: "green", warning: "yellow", failed: "red" } as const;

/** Runs all checks and prints them; EXIT.environment if one failed. */
export async function runDoctor(settings: DoctorSettings): Promise<number> {
  const bootstrap = (): string =>
    createBootstrapText({
      name: "doctor",
      pool: "default",
      edge: { host: settings.bind, port: settings.edgePort },
      envoyAdminPort: settings.envoyAdminPort,
      coordinator: { host: "127.0.0.1", port: settings.coordinatorPort },
      xds: { host: "127.0.0.1", port: settings.xdsPort },
      maxWaitMs: 1000,
      tokenFile: undefined,
      hugePages: false,
    });
  const checks: CheckResult[] = [
    checkNode(),
    await checkEnvoy(settings.envoy),
    await checkModule(settings.envoy, settings.module, bootstrap),
    await checkExec(),
    checkDataFolder(settings.data),
    await checkClock(),
    checkFileLimit(),
    ...(await checkPorts(settings)),
    ...(await checkApi(settings)),
  ];
  const bad = checks.filter(({ state }) => state === "failed").length;
  if (settings.output === "json") {
    printJson({ ok: bad === 0, checks });
  } else {
    for (const { name, state, found, advice } of checks) {
      const todo = advice === "" ? "" : `\n  → ${advice}`;
      const mark = paint(COLOUR[state], MARK[state]);
      process.stdout.write(`${mark} ${name.padEnd(13)} ${found}${todo}\n`);
    }
  }
  return bad === 0 ? EXIT.ok : EXIT.environment;
}
