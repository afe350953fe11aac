import { CommanderError } from "commander";
import { styleText } from "node:util";
import { BelayError } from "@belay/model";
import { dieWithLauncher } from "../process/launcher.ts";
import { CliFailure } from "./cli-failure.ts";
import { describeSystemError } from "../machine/system-error.ts";
import { EXIT } from "./exit-code.ts";
import { OutputWatch } from "./output-watch.ts";
import { createProgram } from "./program.ts";

/** Runs one command line; the exit code says how it went. */
async function main(args: readonly string[]): Promise<number> {
  try {
    const program = createProgram();
    if (args.length === 0) {
      program.outputHelp();
      return EXIT.usage;
    }
    await program.parseAsync(args, { from: "user" });
    return Number(process.exitCode ?? EXIT.ok);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    printError(error);
    if (error instanceof BelayError) return error.facts.exit;
    return error instanceof CliFailure ? error.exitCode : EXIT.failed;
  }
}

function printError(error: unknown): void {
  const name = styleText("red", "belay:", { stream: process.stderr });
  if (error instanceof BelayError) {
    console.error(`${name} ${error.message} [${error.code}]\n  → ${error.facts.hint}`);
    return;
  }
  if (!(error instanceof CliFailure)) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    console.error(`${name} ${text}\n  → This is a fault in Belay itself; please report it.`);
    return;
  }
  console.error(`${name} ${error.message}`);
  for (const line of error.advice) console.error(`  → ${line}`);
}

/** The exit code when the output did not arrive: whoever reads it must not take it for all there is. */
function afterLoss(loss: Error, code: number): number {
  // The reader has seen enough (`| head`): as with other programs, no word, and SIGPIPE's code.
  if ("code" in loss && loss.code === "EPIPE") return code === EXIT.ok ? EXIT.brokenPipe : code;
  const what = `the output is lost: ${describeSystemError(loss)}`;
  printError(new CliFailure(what, ["Standard output goes where nothing more can be written."]));
  return code === EXIT.ok ? EXIT.environment : code;
}

dieWithLauncher();
// A lost log line stops nothing.
process.stderr.on("error", () => undefined);
const output = new OutputWatch(process.stdout);
const code = await main(process.argv.slice(2));
const loss = await output.settle();
// Explicitly: sockets that linger (keep-alive of fetch) must not hold the program.
process.exit(loss === undefined ? code : afterLoss(loss, code));
