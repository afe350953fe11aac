import { styleText } from "node:util";
import type { LogFormat } from "../log/process-logger.ts";

const COLOURS = ["cyan", "magenta", "green", "yellow", "blue"] as const;
const NAME_CHARS = 13;

export type PrintLine = (name: string, line: string) => void;

/**
 * Prints lines of several processes on standard error: each behind its name, in its colour, or as one
 * JSON object a line with `process` and `time`.
 */
export function createLinePrinter(format: LogFormat): PrintLine {
  if (format === "json") {
    return (name, line) => process.stderr.write(`${toJsonLine(name, line)}\n`);
  }
  const prefixes = new Map<string, string>();
  return (name, line) => {
    let prefix = prefixes.get(name);
    if (prefix === undefined) {
      const colour = COLOURS[prefixes.size % COLOURS.length] ?? "cyan";
      prefix = styleText(colour, `${name.padEnd(NAME_CHARS)} |`, { stream: process.stderr });
      prefixes.set(name, prefix);
    }
    process.stderr.write(`${prefix} ${line}\n`);
  };
}

/** What a process prints as JSON stays as it is; other words become a message of that time. */
export function toJsonLine(name: string, line: string): string {
  const time = new Date().toISOString();
  const fields = parseObject(line) ?? { level: "info", msg: line };
  return JSON.stringify({ time, ...fields, process: name });
}

function parseObject(line: string): object | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    const parsed: unknown = JSON.parse(line);
    return typeof parsed === "object" && parsed !== null ? parsed : undefined;
  } catch {
    return undefined;
  }
}
