// Replays or explores seeds of the ownership simulator:
//   node --conditions=belay-source test/simulator/replay.ts [--seed N] [--count N] [--guarded true|false]
// Exit code 1: some seed broke a rule; the rule and the last events are printed.
import { parseArgs } from "node:util";
import { simulate, type SimulationResult } from "@belay/simulator";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    count: { type: "string", default: "1" },
    guarded: { type: "string" },
    "duration-ms": { type: "string", default: "20000" },
  },
});

const first = Number(values.seed);
const kinds = values.guarded === undefined ? [true, false] : [values.guarded === "true"];
const durationMs = Number(values["duration-ms"]);

function report({ seed, violation, steps, answers, notes }: SimulationResult): void {
  if (violation === undefined) {
    process.stdout.write(`seed ${seed}: ok, ${steps} steps, ${answers} answers\n`);
    return;
  }
  process.exitCode = 1;
  process.stdout.write(`seed ${seed}: ${violation.message}\n  ${notes.join("\n  ")}\n`);
}

for (const guarded of kinds) {
  process.stdout.write(guarded ? "guarded\n" : "unguarded\n");
  for (let seed = first; seed < first + Number(values.count); seed += 1) {
    report(simulate({ seed, guarded, durationMs }));
  }
}
