import { type Command, InvalidArgumentError } from "commander";
import { ApiClient, type ApiOptions } from "./api-client.ts";
import { shardFields } from "./owner.ts";
import { type OutputFormat, paint, printFields, printJson } from "./printer.ts";
import { withApi, withExamples, withOutput } from "./verb.ts";

type Header = [name: string, value: string];

/** `belay explain METHOD URL [-H …]`. */
export function defineExplain(program: Command): void {
  const command = program
    .command("explain")
    .summary("say what an edge does with a request, and why")
    .description(
      "Says what an edge would do with a request: service, route, key, owner, and why. Sends nothing and places nothing.",
    )
    .argument("<method>", "HTTP method")
    .argument("<url>", "address as the client writes it")
    .option("-H, --header <header>", "a header, `Name: value`; may be given again", addHeader, [])
    .action(explain);
  withExamples(withOutput(withApi(command)), [
    ["belay explain GET http://127.0.0.1:8080/s/ann/", "the key is in the path"],
    ['belay explain GET http://127.0.0.1:8080/ -H "x-player-id: ann"', "the key is in a header"],
  ]);
}

function addHeader(text: string, before: Header[]): Header[] {
  const colon = text.indexOf(":");
  if (colon < 1) throw new InvalidArgumentError("A header looks like `Name: value`.");
  return [...before, [text.slice(0, colon).trim(), text.slice(colon + 1).trim()]];
}

async function explain(
  method: string,
  url: string,
  options: ApiOptions & { output: OutputFormat; header: Header[] },
): Promise<void> {
  const request = { method, url, headers: options.header };
  const view = await new ApiClient(options).post("/v1/explain", (it) => it.explainSchema, request);
  if (options.output === "json") return printJson(view);
  for (const [index, line] of view.steps.entries()) {
    console.log(`${paint("dim", `${index + 1}.`)} ${line}`);
  }
  console.log("");
  const { route } = view;
  printFields([
    ["outcome", view.outcome],
    ...(view.service === null ? [] : [["service", view.service] as const]),
    ...(route === null ? [] : [["route", `${route.match} (${route.file}:${route.line})`] as const]),
    ...(view.from === null ? [] : [["key from", view.from] as const]),
    ...(view.server === null ? [] : [["server", view.server] as const]),
    ...(view.status === null ? [] : [["status", String(view.status)] as const]),
    ...(view.reason === null ? [] : [["reason", view.reason] as const]),
    ...(view.outcome === "forward" ? [["server sees", view.upstreamPath] as const] : []),
    ...(view.shard === null ? [] : shardFields(view.shard)),
  ]);
  return undefined;
}
