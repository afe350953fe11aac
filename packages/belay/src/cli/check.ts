import type { Command } from "commander";
import { readFileSync } from "node:fs";
import { ApiClient, type ApiOptions } from "./api-client.ts";
import { CliFailure } from "./cli-failure.ts";
import { EXIT } from "./exit-code.ts";
import { type OutputFormat, paint, printJson } from "./printer.ts";
import { withApi, withExamples, withOutput } from "./verb.ts";

/** `belay check FILE…`: all that is wrong with service files, without changing anything. */
export function defineCheck(program: Command): void {
  const command = program
    .command("check")
    .summary("say all that is wrong with service files")
    .description("Says all that is wrong with service files, alone and beside each other.")
    .argument("<file...>", "service files (YAML)")
    .action(check);
  withExamples(withOutput(withApi(command)), [
    ["belay check world.yaml", "problems with file, line, column and a fix"],
    ["belay check services/*.yaml -o json", "the same for a program"],
  ]);
}

/** The text of a file. Fails with a clear word. */
export function readServiceFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new CliFailure(`cannot read ${path}: ${String(cause)}`, [], EXIT.usage);
  }
}

async function check(
  paths: readonly string[],
  options: ApiOptions & { output: OutputFormat },
): Promise<void> {
  const files = paths.map((file) => ({ file, yaml: readServiceFile(file) }));
  const view = await new ApiClient(options).post("/v1/services:check", (it) => it.checkSchema, {
    files,
  });
  if (options.output === "json") {
    printJson(view);
  } else {
    for (const it of view.problems) {
      const severity = paint(it.severity === "error" ? "red" : "yellow", it.severity);
      console.log(`${it.file}:${it.line}:${it.column}: ${severity}: ${it.what}`);
      if (it.fix !== "") console.log(`  → ${it.fix}`);
    }
    if (view.ok) console.log(`${paint("green", "good")}: ${view.services.join(", ")}`);
  }
  if (!view.ok) process.exitCode = EXIT.invalidFile;
}
