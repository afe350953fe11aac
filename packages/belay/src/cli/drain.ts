import { type Command, Option } from "commander";
import { ApiClient, type ApiOptions } from "./api-client.ts";
import { CliFailure } from "./cli-failure.ts";
import { parseDuration } from "./options.ts";
import { poll } from "./poll.ts";
import { type OutputFormat, printJson } from "./printer.ts";
import { ProgressLine } from "./progress-line.ts";
import { withApi, withExamples, withOutput } from "./verb.ts";

const WAIT_MS = 600_000;

interface DrainOptions extends ApiOptions {
  readonly output: OutputFormat;
  readonly service?: string;
  readonly wait: boolean;
  readonly timeout: number;
}

/** `belay drain SERVER`. */
export function defineDrain(program: Command): void {
  const command = program
    .command("drain")
    .summary("move everything away from a server")
    .description(
      "Moves everything away from a server, at the service's rate, and waits until it owns nothing. It gets no new keys from then on and may be stopped.",
    )
    .argument("<server>", "id of the server")
    .option("--service <service>", "needed if several services have a server of this id")
    .option("--no-wait", "return as soon as the drain has begun")
    .addOption(
      new Option("--timeout <time>", "how long to wait")
        .default(WAIT_MS, "10m")
        .argParser(parseDuration),
    )
    .action(drain);
  withExamples(withOutput(withApi(command)), [
    ["belay drain world-1", "shows how many keys are left, until none is"],
  ]);
}

async function drain(server: string, options: DrainOptions): Promise<void> {
  const client = new ApiClient(options);
  const service = options.service === undefined ? {} : { service: options.service };
  const started = await client.post("/v1/drains", (it) => it.drainSchema, { server, ...service });
  const line = new ProgressLine();
  let remaining = started.remaining;
  if (options.wait) {
    line.show(`draining ${server}: ${remaining} left`);
    const done = await poll(options.timeout, async () => {
      remaining = await countShards(client, started.service, server);
      line.show(`draining ${server}: ${remaining} left`);
      return remaining === 0 ? true : undefined;
    });
    line.end();
    if (done === undefined) {
      throw new CliFailure(`${server} still owns ${remaining} after ${options.timeout / 1000} s.`, [
        "The drain goes on; ask again, or see `belay get servers`.",
      ]);
    }
  }
  if (options.output === "json") return printJson({ ...started, remaining });
  const end = options.wait ? "owns nothing and may be stopped" : `drains, ${remaining} left`;
  console.log(`${started.service}/${server} ${end}`);
  return undefined;
}

/** What the server still owns; one that is gone owns nothing. */
async function countShards(client: ApiClient, service: string, id: string): Promise<number> {
  const view = await client.get("/v1/servers", (it) => it.serversSchema, { service });
  return view.servers.find((it) => it.id === id)?.shards ?? 0;
}
