import { type Command, InvalidArgumentError, Option } from "commander";
import type { HealthCheck, RunSettings } from "../run/run-settings.ts";
import * as flag from "./options.ts";
import { withExamples, withLog } from "./verb.ts";

/** `belay run … -- COMMAND…`: registers a server that knows nothing of Belay. */
export function defineRun(program: Command): void {
  const command = program
    .command("run")
    .summary("run a command as a server of a service")
    .description(
      "Runs a command, unchanged and in any language, as a server of a service: registers it once it is healthy, renews its lease, drains it on SIGTERM before it stops it, and gives its keys away at once when it is dead. Ends with the command's exit code.",
    )
    .argument("<command...>", "the command, after --")
    .requiredOption("--service <name>", "the service")
    .addOption(
      new Option("--port <port>", "port that the command listens on; auto: a free one, in PORT")
        .makeOptionMandatory()
        .argParser((text) => (text === "auto" ? "auto" : flag.parsePort(text))),
    )
    .option("--id <id>", "id of the server (default: <host>-<pid>-<random>)")
    .option("--zone <zone>", "zone of the server", "")
    .option("--capacity <keys>", "keys that it takes at most, 0: no limit", flag.parseCount, 0)
    .addOption(
      new Option("--health <check>", "when it is healthy: `tcp`, or `http:/path` answers 2xx")
        .default({ kind: "tcp" }, "tcp")
        .argParser(parseHealth),
    )
    .addOption(
      new Option("--start-timeout <time>", "longest time until it is healthy")
        .default(60_000, "60s")
        .argParser(flag.parseDuration),
    )
    .option(
      "--advertise <ip>",
      "IP under which edges reach it, in HOST for the command (default: 127.0.0.1)",
    )
    .option("--restart", "start the command anew when its lease was lost")
    .addOption(
      new Option("--on-lost-lease <what>", "when the coordinator is silent for a whole lease")
        .choices(["keep", "stop"])
        .default("keep"),
    )
    .addOption(
      new Option("--stop-timeout <time>", "from SIGTERM to SIGKILL for the command")
        .default(10_000, "10s")
        .argParser(flag.parseDuration),
    )
    .addOption(flag.coordinatorPort())
    .addOption(flag.coordinatorAddress())
    .addOption(flag.edgePort())
    .addOption(
      new Option("--edge-url <url>", "address of the edge, for the command").env("BELAY_EDGE_URL"),
    )
    .addOption(flag.tokenFile())
    .action(async (words: string[], options: RunSettings) => {
      const { runServer } = await import("../run/run-server.ts");
      process.exitCode = await runServer(words, options);
    });
  withExamples(withLog(command), [
    ["belay run --service chat --port auto -- node chat.js", "chat.js listens on $PORT"],
    ["belay run --service docs --port 4000 --health http:/healthz -- ./docs", "a fixed port"],
  ]);
}

function parseHealth(text: string): HealthCheck {
  if (text === "tcp") return { kind: "tcp" };
  if (/^http:\/[^\s]*$/.test(text)) return { kind: "http", path: text.slice("http:".length) };
  throw new InvalidArgumentError("A health check is `tcp` or `http:/path`.");
}
