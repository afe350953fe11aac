import { CommanderError } from "commander";
import { styleText } from "node:util";
import { BelayError } from "@belay/model";
import { dieWithLauncher } from "../process/launcher.ts";
import { CliFailure } from "./cli-failure.ts";
import { EXIT } from "./exit-code.ts";
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

dieWithLauncher();
// Explicitly: sockets that linger (keep-alive of fetch) must not hold the program.
process.exit(await main(process.argv.slice(2)));
