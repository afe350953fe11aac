import type { LogFields, Logger } from "@belay/model";

function write(level: string, fields: LogFields, message: string): void {
  const line = { level, name: "belay", ...fields, message };
  const text = JSON.stringify(line, (_, value: unknown) =>
    typeof value === "bigint" ? value.toString() : value,
  );
  process.stderr.write(`${text}\n`);
}

/** Warnings and errors as JSON lines on stderr, nothing else: for whoever gives no logger. */
export const createStderrLogger = (): Logger => ({
  debug: () => undefined,
  info: () => undefined,
  warn: (fields, message) => write("warn", fields, message),
  error: (fields, message) => write("error", fields, message),
});
