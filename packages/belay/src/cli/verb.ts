import type { Command } from "commander";
import { api, logFormat, logLevel, output, tokenFile } from "./options.ts";

/** Shows examples under the verb's help; each is a command line and what it does. */
export function withExamples(
  command: Command,
  examples: readonly (readonly [line: string, does: string])[],
): Command {
  const width = Math.max(...examples.map(([line]) => line.length));
  const lines = examples.map(([line, does]) => `  ${line.padEnd(width)}  # ${does}`);
  return command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}

/** The flags of every verb that speaks with the admin API. */
export function withApi(command: Command): Command {
  return command.addOption(api()).addOption(tokenFile());
}

/** `-o table|json`. */
export function withOutput(command: Command): Command {
  return command.addOption(output());
}

/** The flags of every verb that logs. */
export function withLog(command: Command): Command {
  return command.addOption(logLevel()).addOption(logFormat());
}
