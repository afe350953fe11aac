import type { Command } from "commander";
import type { ShardView } from "../admin/schemas.ts";
import { ApiClient, type ApiOptions } from "./api-client.ts";
import { type OutputFormat, paintState, printFields, printJson } from "./printer.ts";
import { withApi, withExamples, withOutput } from "./verb.ts";

/** `belay owner SERVICE KEY`. */
export function defineOwner(program: Command): void {
  const command = program
    .command("owner")
    .summary("say who owns a key")
    .description("Says which server owns a key, at which epoch. Places nothing.")
    .argument("<service>", "the service")
    .argument("<key>", "the key, as the server gets it")
    .action(owner);
  withExamples(withOutput(withApi(command)), [
    ["belay owner world ann", "server, address, epoch"],
    ["belay owner world ann -o json", "the same for a program"],
  ]);
}

/** The lines that describe a shard to people. */
export function shardFields(shard: ShardView): (readonly [string, string])[] {
  if (shard.state === "free") {
    return [
      ["key", shard.key],
      ["state", `${paintState("free")}: nobody owns it; the first request places it`],
    ];
  }
  return [
    ["key", shard.key],
    ["state", paintState(shard.state)],
    ["server", shard.server],
    ["address", shard.address],
    ["epoch", shard.epoch],
    ["incarnation", shard.incarnation],
    ...(shard.to === "" ? [] : [["moving to", shard.to] as const]),
  ];
}

async function owner(
  service: string,
  key: string,
  options: ApiOptions & { output: OutputFormat },
): Promise<void> {
  const shard = await new ApiClient(options).get("/v1/owner", (it) => it.shardSchema, {
    service,
    key,
  });
  if (options.output === "json") return printJson(shard);
  return printFields([["service", shard.service], ...shardFields(shard)]);
}
