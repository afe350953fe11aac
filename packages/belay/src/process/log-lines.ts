import type { Readable } from "node:stream";

const LINE_CHARS_MAX = 16_384;

/** Calls `onLine` for each line of a stream; longer ones than LINE_CHARS_MAX come in pieces. */
export function readLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line);
    if (rest.length > LINE_CHARS_MAX) {
      onLine(rest);
      rest = "";
    }
  });
  stream.on("end", () => {
    if (rest !== "") onLine(rest);
  });
}
