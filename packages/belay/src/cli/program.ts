import { Command } from "commander";
import { styleText } from "node:util";
import { defineApply } from "./apply.ts";
import { defineCheck } from "./check.ts";
import { defineCompletion } from "./completion.ts";
import { defineCore } from "./core.ts";
import { defineDoctor } from "./doctor.ts";
import { defineDrain } from "./drain.ts";
import { EXIT_CODES } from "./exit-code.ts";
import { defineExplain } from "./explain.ts";
import { defineGet } from "./get.ts";
import { defineMove } from "./move.ts";
import { defineOwner } from "./owner.ts";
import { defineProxy } from "./proxy.ts";
import { defineRun } from "./run.ts";
import { defineStatus } from "./status.ts";
import { defineUp } from "./up.ts";
import { readVersion } from "./version.ts";

/** All verbs. What they do is loaded only when one of them runs, so that help is fast. */
export function createProgram(): Command {
  const program = new Command("belay")
    .description("Traffic for stateful services: every key has one owner, on stock Envoy.")
    .version(readVersion(), "-V, --version", "print the version")
    .configureHelp({
      styleTitle: (text) => styleText("bold", text, { stream: process.stdout }),
      helpWidth: 100,
    })
    .configureOutput({
      outputError: (text, write) =>
        write(text.replace(/^error: /, styleText("red", "belay: ", { stream: process.stderr }))),
    })
    .exitOverride();
  program.helpCommand(false).commandsGroup("Processes:");
  defineUp(program);
  defineCore(program);
  defineProxy(program);
  defineRun(program);
  program.commandsGroup("Service files:");
  defineCheck(program);
  defineApply(program);
  program.commandsGroup("Looking and moving:");
  defineGet(program);
  defineOwner(program);
  defineExplain(program);
  defineMove(program);
  defineDrain(program);
  defineStatus(program);
  program.commandsGroup("This machine:");
  defineDoctor(program);
  defineCompletion(program);
  const codes = EXIT_CODES.map(([code, meaning]) => `  ${code.padEnd(5)}  ${meaning}`);
  return program
    .showHelpAfterError("(see --help)")
    .addHelpText("after", `\nExit codes:\n${codes.join("\n")}`);
}
