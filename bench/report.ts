import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CaseId } from "./options.ts";

/** One line of the table. */
export interface Row {
  readonly id: CaseId;
  readonly what: string;
  readonly value: string;
  /** Beside what it is measured against; empty: nothing. */
  readonly beside?: string;
  readonly target?: string;
  /** Undefined: there is no target. */
  readonly isMet?: boolean;
}

/** What a case found: rows for people, everything measured for programs. */
export interface CaseResult {
  readonly rows: readonly Row[];
  readonly raw: unknown;
}

const HEAD = ["case", "what", "got", "beside it", "target", ""];

/** The rows as a Markdown table with aligned columns. */
export function formatTable(rows: readonly Row[]): string {
  const cells = rows.map((row) => [
    row.id,
    row.what,
    row.value,
    row.beside ?? "",
    row.target ?? "",
    row.isMet === undefined ? "" : row.isMet ? "met" : "**missed**",
  ]);
  const widths = HEAD.map((head, at) =>
    Math.max(3, ...[HEAD, ...cells].map((line) => (line[at] ?? head).length)),
  );
  const line = (words: readonly string[]): string =>
    `| ${words.map((word, at) => word.padEnd(widths[at] ?? 0)).join(" | ")} |`;
  return [line(HEAD), line(widths.map((width) => "-".repeat(width))), ...cells.map(line)].join(
    "\n",
  );
}

/** Writes a run to bench/results (git-ignored) and answers the file's path. */
export function writeResults(startedAt: Date, results: unknown): string {
  const folder = join(import.meta.dirname, "results");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${startedAt.toISOString().replaceAll(":", "-")}.json`);
  writeFileSync(file, `${JSON.stringify(results, null, 1)}\n`);
  return file;
}
