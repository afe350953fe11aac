import { FILE_BYTES_MAX } from "@belay/model";
import { closeSync, openSync, readSync } from "node:fs";
import { describeSystemError } from "../machine/system-error.ts";
import { CliFailure } from "./cli-failure.ts";
import { EXIT } from "./exit-code.ts";

/** The text of a service file, a pipe too; fails with a clear word, also if it is too large. */
export function readServiceFile(path: string): string {
  const buffer = Buffer.alloc(FILE_BYTES_MAX + 1);
  let length = 0;
  try {
    const fd = openSync(path, "r");
    try {
      while (length < buffer.length) {
        const bytes = readSync(fd, buffer, length, buffer.length - length, null);
        if (bytes === 0) break;
        length += bytes;
      }
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    throw new CliFailure(`cannot read ${path}: ${describeSystemError(cause)}`, [], EXIT.usage);
  }
  if (length <= FILE_BYTES_MAX) return buffer.toString("utf8", 0, length);
  const why = `${path}:1:1: the file is larger than ${FILE_BYTES_MAX / 1024} KiB`;
  throw new CliFailure(
    why,
    ["write one service per file and leave data out of it"],
    EXIT.invalidFile,
  );
}
