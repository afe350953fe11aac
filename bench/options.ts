import { parseArgs } from "node:util";
import { BelayError } from "@belay/model";

export const caseIds = ["B1", "B2", "B3", "B4", "B5", "B6"] as const;
export type CaseId = (typeof caseIds)[number];

/** What `npm run bench` takes. */
export interface BenchOptions {
  readonly only: readonly CaseId[];
  /** Rounds of B1 and B2: every variant runs once in each. */
  readonly rounds: number;
  /** Length of one variant's turn in a round. */
  readonly seconds: number;
  /** Keys that the edge knows in B1, B2 and B3. */
  readonly keys: number;
}

export const usage = `npm run bench [-- OPTIONS]
  --only B1,B4     only these cases (default: all)
  --rounds 7       rounds of B1 and B2, each with every variant once, in a new order
  --seconds 3      length of one turn
  --keys 1000000   keys that the edge knows in B1, B2 and B3`;

/** Fails with `usage` on what it does not know. */
export function parseOptions(args: readonly string[]): BenchOptions | "help" {
  const values = parseFlags(args);
  if (values.help) return "help";
  return {
    only: values.only.split(",").map(parseCase),
    rounds: parseWhole("--rounds", values.rounds, 1000),
    seconds: parseWhole("--seconds", values.seconds, 600),
    keys: parseWhole("--keys", values.keys, 10_000_000),
  };
}

function parseFlags(args: readonly string[]) {
  const config = {
    args: [...args],
    options: {
      only: { type: "string", default: caseIds.join(",") },
      rounds: { type: "string", default: "7" },
      seconds: { type: "string", default: "3" },
      keys: { type: "string", default: "1000000" },
      help: { type: "boolean", default: false },
    },
  } as const;
  try {
    return parseArgs(config).values;
  } catch (error) {
    throw new BelayError("usage", error instanceof Error ? error.message : String(error));
  }
}

function parseCase(text: string): CaseId {
  const id = caseIds.find((it) => it === text.trim().toUpperCase());
  if (id !== undefined) return id;
  throw new BelayError("usage", `--only ${text}: a case is one of ${caseIds.join(", ")}`);
}

function parseWhole(flag: string, text: string, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= max) return value;
  throw new BelayError("usage", `${flag} ${text}: a whole number from 1 to ${max} is needed`);
}
