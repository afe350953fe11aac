import type { Command } from "commander";
import { ApiClient, type ApiOptions } from "./api-client.ts";
import { checkFiles } from "./check-call.ts";
import { EXIT } from "./exit-code.ts";
import { type OutputFormat, paint, printJson, printProblems } from "./printer.ts";
import { readServiceFile } from "./service-file-text.ts";
import { withApi, withExamples, withOutput } from "./verb.ts";

/** `belay check FILE…`: all that is wrong with service files, without changing anything. */
export function defineCheck(program: Command): void {
  const command = program
    .command("check")
    .summary("say all that is wrong with service files")
    .description(
      "Says all that is wrong with service files: alone, beside each other, and beside the services that are there, as apply would. Changes nothing.",
    )
    .argument("<file...>", "service files (YAML)")
    .action(check);
  withExamples(withOutput(withApi(command)), [
    ["belay check world.yaml", "problems with file, line, column and a fix"],
    ["belay check services/*.yaml -o json", "the same for a program"],
  ]);
}

async function check(
  paths: readonly string[],
  options: ApiOptions & { output: OutputFormat },
): Promise<void> {
  const files = paths.map((file) => ({ file, yaml: readServiceFile(file) }));
  const view = await checkFiles(new ApiClient(options), files);
  if (options.output === "json") {
    printJson(view);
  } else {
    printProblems(view.problems);
    if (view.ok) console.log(`${paint("green", "good")}: ${view.services.join(", ")}`);
  }
  if (!view.ok) process.exitCode = EXIT.invalidFile;
}
