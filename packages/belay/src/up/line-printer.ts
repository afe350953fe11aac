import { styleText } from "node:util";

const COLOURS = ["cyan", "magenta", "green", "yellow", "blue"] as const;
const NAME_CHARS = 13;

export type PrintLine = (name: string, line: string) => void;

/** Prints lines of several processes on standard error, each behind its name, in its colour. */
export function createLinePrinter(): PrintLine {
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
