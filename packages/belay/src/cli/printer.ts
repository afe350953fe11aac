import { stripVTControlCharacters, styleText } from "node:util";
import type { CheckView } from "../admin/schemas.ts";

export type OutputFormat = "table" | "json";

const COLUMN_GAP = "  ";
type Colour = Parameters<typeof styleText>[0];

/** Colours `text` on a terminal only, and not if NO_COLOR is set. */
export function paint(colour: Colour, text: string): string {
  return styleText(colour, text, { stream: process.stdout });
}

/** A state in the colour of how good it is. */
export function paintState(state: string): string {
  if (/^(active|serving|owned|ok|live|yes)$/.test(state)) return paint("green", state);
  if (/^(refused|failed|none|no)$/.test(state)) return paint("red", state);
  return paint("yellow", state);
}

/** Prints what the API answered, as it is. */
export function printJson(value: unknown): void {
  console.log(JSON.stringify(value, null, 2));
}

/** Prints rows under bold headings, in columns as wide as needed. Nothing but `empty` if there are none. */
export function printTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  empty: string,
): void {
  if (rows.length === 0) {
    console.log(empty);
    return;
  }
  const clean = rows.map((row) => row.map((cell) => (cell === "" ? "-" : cell)));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...clean.map((row) => visibleLength(row[column] ?? ""))),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - visibleLength(cell)))
      .join(COLUMN_GAP)
      .trimEnd();
  console.log(paint("bold", line(headings)));
  for (const row of clean) console.log(line(row));
}

/** Prints `name: value` lines, names in one column. */
export function printFields(fields: readonly (readonly [name: string, value: string])[]): void {
  const width = Math.max(...fields.map(([name]) => name.length));
  for (const [name, value] of fields) {
    console.log(`${paint("bold", name.padEnd(width))}${COLUMN_GAP}${value}`);
  }
}

type Problem = CheckView["problems"][number];

/** `file:line:column: member: what is wrong`; a warning says that it is one. */
export function formatProblem({ file, line, column, severity, path, what }: Problem): string {
  const kind = severity === "warning" ? "warning: " : "";
  return `${file}:${line}:${column}: ${kind}${path === "" ? "" : `${path}: `}${what}`;
}

/** Problems of service files, each with its fix below. */
export function printProblems(problems: readonly Problem[]): void {
  for (const it of problems) {
    console.log(formatProblem(it));
    if (it.fix !== "") console.log(`  → ${it.fix}`);
  }
}

function visibleLength(text: string): number {
  return stripVTControlCharacters(text).length;
}

/** `1.2 s`, `3 min`, for people. */
export function formatMs(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}
