import { type Command, InvalidArgumentError, Option } from "commander";
import type { CoreSettings, CoreRole } from "../core/core-settings.ts";
import * as flag from "./options.ts";
import { withExamples, withLog } from "./verb.ts";

const ROLES: readonly CoreRole[] = ["coordinator", "control-plane"];

/** `belay core --roles …`: coordinator, control plane, or both in one process. */
export function defineCore(program: Command): void {
  const command = program
    .command("core")
    .summary("run the coordinator, the control plane, or both")
    .description(
      "Runs the coordinator (who owns which key), the control plane (service files to edges, admin API), or both in one process, until SIGTERM or Ctrl-C.",
    )
    .addOption(
      new Option("--roles <roles>", "coordinator, control-plane, or both with a comma")
        .default(ROLES, "coordinator,control-plane")
        .argParser(parseRoles),
    )
    .addOption(flag.bind())
    .addOption(flag.coordinatorPort())
    .addOption(flag.coordinatorAddress())
    .addOption(flag.apiPort())
    .addOption(flag.xdsPort())
    .addOption(flag.metricsPort(8803))
    .addOption(flag.data())
    .addOption(flag.services())
    .addOption(flag.accessLog())
    .addOption(flag.tokenFile())
    .action(async (options: CoreSettings) => {
      const { runCore } = await import("../core/run-core.ts");
      process.exitCode = await runCore(options);
    });
  withExamples(withLog(command), [
    ["belay core", "both roles, on loopback"],
    ["belay core --roles coordinator --bind 10.0.0.5 --token-file t", "for other machines"],
  ]);
}

function parseRoles(text: string): CoreRole[] {
  const names = text.split(",").map((it) => it.trim());
  const roles = ROLES.filter((it) => names.includes(it));
  if (roles.length > 0 && roles.length === names.length) return roles;
  throw new InvalidArgumentError(`Roles are ${ROLES.join(" and ")}, with a comma between.`);
}
