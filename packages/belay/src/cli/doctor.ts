import { type Command, Option } from "commander";
import type { DoctorSettings } from "../doctor/doctor-settings.ts";
import * as flag from "./options.ts";
import { withExamples, withOutput } from "./verb.ts";

/** `belay doctor`: what is wrong with this machine. */
export function defineDoctor(program: Command): void {
  const command = program
    .command("doctor")
    .summary("say what is wrong with this machine and installation")
    .description(
      "Checks Node, Envoy, the module, ports, data folder, clock and limits, and whether core and edge answer. Exit code 1 if something is wrong.",
    )
    .addOption(flag.envoyBinary())
    .addOption(new Option("--module <file>", "libbelay.so").env("BELAY_MODULE"))
    .addOption(flag.data())
    .addOption(flag.bind())
    .addOption(flag.edgePort())
    .addOption(flag.apiPort())
    .addOption(flag.coordinatorPort())
    .addOption(flag.xdsPort())
    .addOption(flag.envoyAdminPort())
    .addOption(flag.api())
    .addOption(flag.tokenFile())
    .action(async (options: DoctorSettings) => {
      const { runDoctor } = await import("../doctor/run-doctor.ts");
      process.exitCode = await runDoctor(options);
    });
  withExamples(withOutput(command), [
    ["belay doctor", "a line per check, and what to do"],
    ["belay doctor -o json", "the same for a program"],
  ]);
}
