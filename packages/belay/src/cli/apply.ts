import type { Command } from "commander";
import type { ApplyView } from "../admin/schemas.ts";
import { ApiClient, type ApiOptions } from "./api-client.ts";
import { checkFiles } from "./check-call.ts";
import { CliFailure } from "./cli-failure.ts";
import { EXIT } from "./exit-code.ts";
import { formatProblem, type OutputFormat, paint, printJson } from "./printer.ts";
import { readServiceFile } from "./service-file-text.ts";
import { withApi, withExamples, withOutput } from "./verb.ts";

/** `belay apply FILE…`: brings service files to the running Belay. */
export function defineApply(program: Command): void {
  const command = program
    .command("apply")
    .summary("bring service files to the running Belay")
    .description(
      "Brings service files to the running Belay: each is written to <data>/services/NAME.yaml, but only if nothing is wrong with any of them.",
    )
    .argument("<file...>", "service files (YAML)")
    .action(apply);
  withExamples(withOutput(withApi(command)), [
    ["belay apply chat.yaml", "the service is there, or changed, when this returns"],
  ]);
}

async function apply(
  paths: readonly string[],
  options: ApiOptions & { output: OutputFormat },
): Promise<void> {
  const client = new ApiClient(options);
  const files = paths.map((file) => ({ file, yaml: readServiceFile(file) }));
  // Together: what one of them takes from another must be known before the first is written.
  const checked = await checkFiles(client, files);
  const problems = checked.problems
    .filter((it) => it.severity === "error")
    .map((it) => `${formatProblem(it)}${it.fix && ` (${it.fix})`}`);
  if (problems.length > 0) {
    throw new CliFailure("nothing was applied:", problems, EXIT.invalidFile);
  }
  const named = files.map(({ file, yaml }, index) => ({
    file,
    yaml,
    name: checked.services[index] ?? "",
  }));
  const applied = await applyInOrder(client, named);
  if (options.output === "json") return printJson(applied);
  for (const it of applied) {
    const what = it.changed ? paint("green", "applied") : "unchanged";
    console.log(`${it.service.name}: ${what} (${it.file})`);
  }
  return undefined;
}

/** One after the other, in the order given: a later file may lean on an earlier one. */
async function applyInOrder(
  client: ApiClient,
  files: readonly { file: string; yaml: string; name: string }[],
): Promise<ApplyView[]> {
  const [first, ...rest] = files;
  if (first === undefined) return [];
  const { file, yaml, name } = first;
  if (name === "") throw new CliFailure(`${file} names no service.`);
  const view = await client.put(
    `/v1/services/${encodeURIComponent(name)}`,
    (schemas) => schemas.applySchema,
    { file, yaml },
  );
  return [view, ...(await applyInOrder(client, rest))];
}
