// `npm run bench`: measures Belay beside other ways to route, on this machine, and prints one table.
import { loadavg } from "node:os";
import { BelayError } from "@belay/model";
import { benchPathKey } from "./cases/b1-path-key.ts";
import { benchEnvelope } from "./cases/b2-envelope.ts";
import { benchMemory } from "./cases/b3-memory.ts";
import { benchPlacement } from "./cases/b4-placement.ts";
import { benchWarmStart } from "./cases/b5-warm-start.ts";
import { benchPlannedMove } from "./cases/b6-planned-move.ts";
import { CaseContext } from "./cases/context.ts";
import { describeMachine, findTools } from "./machine/tools.ts";
import { type BenchOptions, type CaseId, caseIds, parseOptions, usage } from "./options.ts";
import { type CaseResult, formatTable, type Row, writeResults } from "./report.ts";

const cases: Readonly<Record<CaseId, (context: CaseContext) => Promise<CaseResult>>> = {
  B1: benchPathKey,
  B2: benchEnvelope,
  B3: benchMemory,
  B4: benchPlacement,
  B5: benchWarmStart,
  B6: benchPlannedMove,
};
/** These run on one filled edge. */
const pinned: ReadonlySet<CaseId> = new Set(["B1", "B2", "B3"]);

const startedMs = performance.now();
const say = (text: string): void => {
  console.error(`${((performance.now() - startedMs) / 1000).toFixed(0).padStart(4)} s  ${text}`);
};

async function bench(options: BenchOptions): Promise<void> {
  const startedAt = new Date();
  const tools = findTools();
  const context = new CaseContext(tools, options, say);
  const rows: Row[] = [];
  const raw: Partial<Record<CaseId, unknown>> = {};
  const load: Partial<Record<CaseId, number>> = {};
  try {
    for (const id of caseIds.filter((it) => options.only.includes(it))) {
      if (!pinned.has(id)) await context.release();
      say(`${id} (load average ${loadavg()[0]?.toFixed(1)})`);
      load[id] = loadavg()[0] ?? 0;
      const result = await cases[id](context);
      rows.push(...result.rows);
      raw[id] = result.raw;
    }
  } finally {
    await context.release();
  }
  const machine = describeMachine(tools);
  const file = writeResults(startedAt, {
    startedAt,
    machine,
    options,
    loadBefore: load,
    rows,
    raw,
  });
  console.log(`\n${formatTable(rows)}\n\n${JSON.stringify(machine)}\nall numbers: ${file}`);
}

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === "help") console.log(usage);
  else await bench(options);
} catch (error) {
  const known = error instanceof BelayError;
  console.error(known ? `bench: ${error.message}\n  → ${error.facts.hint}` : error);
  process.exitCode = known ? error.facts.exit : 1;
}
