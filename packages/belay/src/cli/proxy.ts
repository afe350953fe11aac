import { type Command, Option } from "commander";
import type { ProxySettings } from "../proxy/proxy-settings.ts";
import * as flag from "./options.ts";
import { withExamples, withLog } from "./verb.ts";

/** `belay proxy`: an edge. */
export function defineProxy(program: Command): void {
  const command = program
    .command("proxy")
    .summary("run an edge: Envoy with Belay's module")
    .description(
      "Writes Envoy's bootstrap, runs Envoy with Belay's module, and drains it on SIGTERM or Ctrl-C before it stops. Ends with Envoy's exit code.",
    )
    .addOption(flag.edgePort())
    .addOption(flag.bind())
    .addOption(flag.envoyAdminPort())
    .addOption(flag.coordinatorPort())
    .addOption(flag.coordinatorAddress())
    .addOption(flag.xdsPort())
    .addOption(
      new Option("--xds <ip:port>", "address of xDS (default: loopback, --xds-port)").env(
        "BELAY_XDS",
      ),
    )
    .addOption(new Option("--name <name>", "name of this edge (default: edge-<host>-<pid>)"))
    .addOption(new Option("--pool <pool>", "its pool").default("default"))
    .addOption(
      new Option("--drain-time <time>", "longest time for running requests when it stops")
        .default(10_000, "10s")
        .argParser(flag.parseDuration),
    )
    .addOption(
      new Option("--max-wait <time>", "longest wait for the first snapshot before it opens")
        .default(10_000, "10s")
        .argParser(flag.parseDuration),
    )
    .addOption(
      new Option(
        "--concurrency <threads>",
        "Envoy's worker threads (default: one per core)",
      ).argParser(flag.parseCount),
    )
    .addOption(flag.envoyBinary())
    .addOption(
      new Option("--module <file>", "libbelay.so (default: the one that `npm start` builds)").env(
        "BELAY_MODULE",
      ),
    )
    .addOption(
      new Option(
        "--huge-pages <mode>",
        "put Envoy's code and heap into huge pages: auto (where the kernel has them) or off; 100 MiB more memory for less CPU time",
      )
        .env("BELAY_HUGE_PAGES")
        .choices(["auto", "off"])
        .default("auto"),
    )
    .addOption(flag.metricsPort(8804))
    .addOption(flag.data())
    .addOption(flag.tokenFile())
    .action(async (options: ProxySettings) => {
      const { runProxy } = await import("../proxy/run-proxy.ts");
      process.exitCode = await runProxy(options);
    });
  withExamples(withLog(command), [
    ["belay proxy", "an edge on 127.0.0.1:8080"],
    ["belay proxy --edge-port 8090 --envoy-admin-port 9902", "a second one"],
  ]);
}
