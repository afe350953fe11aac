import type { LogFields, Logger } from "@belay/model";

/**
 * Warnings and errors as JSON lines on stderr, nothing else: for whoever gives no logger. The lines
 * have the members of `belay core --log-format json`.
 */
export function createStderrLogger(out: { write(text: string): unknown } = process.stderr): Logger {
  const write = (level: string, fields: LogFields, msg: string): void => {
    const time = new Date().toISOString();
    const line = { level, time, pid: process.pid, ...fields, msg };
    // Integers of 64 bits go out as text: JSON numbers end at 2^53.
    const text = JSON.stringify(line, (_, value: unknown) =>
      typeof value === "bigint" ? value.toString() : value,
    );
    out.write(`${text}\n`);
  };
  return {
    debug: () => undefined,
    info: () => undefined,
    warn: (fields, message) => write("warn", fields, message),
    error: (fields, message) => write("error", fields, message),
  };
}
