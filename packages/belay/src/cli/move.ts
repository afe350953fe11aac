import { type Command, Option } from "commander";
import { ApiClient, type ApiOptions } from "./api-client.ts";
import { CliFailure } from "./cli-failure.ts";
import { parseDuration } from "./options.ts";
import { poll } from "./poll.ts";
import { type OutputFormat, printFields, printJson } from "./printer.ts";
import { shardFields } from "./owner.ts";
import { withApi, withExamples, withOutput } from "./verb.ts";

const WAIT_MS = 60_000;

interface MoveOptions extends ApiOptions {
  readonly output: OutputFormat;
  readonly to?: string;
  readonly wait: boolean;
  readonly timeout: number;
}

/** `belay move SERVICE KEY [--to SERVER]`. */
export function defineMove(program: Command): void {
  const command = program
    .command("move")
    .summary("move a key to another server")
    .description(
      "Moves a key to another server, and waits until it is there. Its running requests end first, new ones are held; its WebSockets close with 4421.",
    )
    .argument("<service>", "the service")
    .argument("<key>", "the key")
    .option("--to <server>", "the server that gets it (default: placement chooses)")
    .option("--no-wait", "return as soon as the move is committed")
    .addOption(
      new Option("--timeout <time>", "how long to wait")
        .default(WAIT_MS, "60s")
        .argParser(parseDuration),
    )
    .action(move);
  withExamples(withOutput(withApi(command)), [
    ["belay move world ann", "to the server that placement chooses"],
    ["belay move world ann --to world-2", "to a server of yours"],
  ]);
}

async function move(service: string, key: string, options: MoveOptions): Promise<void> {
  const client = new ApiClient(options);
  const to = options.to === undefined ? {} : { to: options.to };
  const started = await client.post("/v1/moves", (it) => it.moveSchema, { service, key, ...to });
  const query = { service, key };
  const shard = options.wait
    ? await poll(options.timeout, async () => {
        const now = await client.get("/v1/owner", (it) => it.shardSchema, query);
        return now.state === "moving" ? undefined : now;
      })
    : await client.get("/v1/owner", (it) => it.shardSchema, query);
  if (shard === undefined) {
    throw new CliFailure(`${key} is still on the move after ${options.timeout / 1000} s.`, [
      `It goes on; see \`belay owner ${service} ${key}\`.`,
    ]);
  }
  if (options.output === "json") return printJson({ ...started, shard });
  return printFields([["moved from", started.from], ...shardFields(shard)]);
}
