import type { Command } from "commander";
import type { UpSettings } from "../up/up-settings.ts";
import * as flag from "./options.ts";
import { withExamples, withLog } from "./verb.ts";

/** `belay up`: everything on this machine. */
export function defineUp(program: Command): void {
  const command = program
    .command("up")
    .summary("run everything on this machine")
    .description(
      "Runs coordinator, control plane and one edge on this machine, each a process of its own; with --demo also three servers. Ctrl-C stops them in order.",
    )
    .option("--demo", "also the demo service `world` with three servers")
    .addOption(flag.edgePort())
    .addOption(flag.apiPort())
    .addOption(flag.coordinatorPort())
    .addOption(flag.xdsPort())
    .addOption(flag.envoyAdminPort())
    .addOption(flag.bind())
    .addOption(flag.data())
    .addOption(flag.services())
    .addOption(flag.tokenFile())
    .addOption(flag.envoyBinary())
    .action(async (options: UpSettings) => {
      const { runUp } = await import("../up/run-up.ts");
      process.exitCode = await runUp(options);
    });
  withExamples(withLog(command), [
    ["belay up --demo", "what `npm start` does"],
    ["belay up --services ./services", "with service files of yours"],
    ["BELAY_EDGE_PORT=9080 belay up", "on another port"],
  ]);
}
