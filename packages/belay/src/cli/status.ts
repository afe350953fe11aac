import type { Command } from "commander";
import { ApiClient, type ApiOptions } from "./api-client.ts";
import { EXIT } from "./exit-code.ts";
import {
  formatMs,
  type OutputFormat,
  paint,
  paintState,
  printFields,
  printJson,
} from "./printer.ts";
import { withApi, withExamples, withOutput } from "./verb.ts";

/** `belay status`. */
export function defineStatus(program: Command): void {
  const command = program
    .command("status")
    .summary("say how control plane and coordinator are")
    .description(
      "Says how control plane and coordinator are. Exit code 1 if the coordinator is away, nothing is served, or something raised an alarm.",
    )
    .action(status);
  withExamples(withOutput(withApi(command)), [
    ["belay status", "for people"],
    ["belay status -o json", "for a program"],
  ]);
}

const endpoints = {
  none: "no word from the coordinator yet, proxies wait",
  "last-known": "from before this start, until the coordinator speaks",
  live: "as the coordinator says",
} as const;

async function status(options: ApiOptions & { output: OutputFormat }): Promise<void> {
  const view = await new ApiClient(options).get("/v1/status", (it) => it.statusSchema);
  const { controlPlane: plane, coordinator } = view;
  const good = plane.state === "serving" && plane.alarm === "" && coordinator.connected;
  if (!good) process.exitCode = EXIT.failed;
  if (options.output === "json") return printJson(view);
  printFields([
    ["version", view.version],
    ["control plane", `${paintState(plane.state)}, up for ${formatMs(plane.upMs)}`],
    ["  services", `${plane.services} served, ${plane.refused} files with problems`],
    ["  endpoints", `${paintState(plane.endpoints)}: ${endpoints[plane.endpoints]}`],
    ["  proxies", `${plane.proxies}, ${plane.nacks} refusals of configuration`],
    ...(plane.alarm === "" ? [] : [["  alarm", paint("red", plane.alarm)] as const]),
    [
      "coordinator",
      `${coordinator.address}, connected: ${paintState(yesNo(coordinator.connected))}`,
    ],
    ...(coordinator.problem === "" ? [] : [["  problem", coordinator.problem] as const]),
  ]);
  if (!coordinator.connected) return undefined;
  printFields([
    ["  store     ", `${coordinator.store ?? ""}, start number ${coordinator.term ?? ""} on it`],
    ["  revision", `${coordinator.revision ?? ""}, of the last change`],
    ["  servers", count(coordinator.servers)],
    ["  keys owned", `${count(coordinator.shards)}, ${count(coordinator.moving)} on the move`],
    ["  proxies", count(coordinator.proxies)],
    ...(coordinator.holdMs
      ? [
          [
            "  waits",
            `${formatMs(coordinator.holdMs)} more, as servers of its last run may live`,
          ] as const,
        ]
      : []),
  ]);
  return undefined;
}

function count(value: number | string | undefined): string {
  return String(value ?? 0);
}

function yesNo(value: boolean): string {
  return value ? "yes" : "no";
}
