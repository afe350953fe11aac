import { pino } from "pino";
import { styleText } from "node:util";
import type { LogFields, Logger } from "@belay/model";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFormat = "text" | "json";

const RANK: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };
const COLOUR = { debug: "gray", info: "green", warn: "yellow", error: "red" } as const;
const TIME_CHARS = { from: 11, to: 23 } as const;

/** Logs to standard error, a line per event: as text for people, or as JSON (pino). */
export function createProcessLogger(level: LogLevel, format: LogFormat): Logger {
  if (format === "json") return createJsonLogger(level);
  const line = (at: LogLevel, fields: LogFields, message: string): void => {
    if (RANK[at] < RANK[level]) return;
    const time = new Date().toISOString().slice(TIME_CHARS.from, TIME_CHARS.to);
    const name = styleText(COLOUR[at], at.toUpperCase().padEnd(5), { stream: process.stderr });
    process.stderr.write(`${time} ${name} ${message}${formatFields(fields)}\n`);
  };
  return {
    debug: (fields, message) => line("debug", fields, message),
    info: (fields, message) => line("info", fields, message),
    warn: (fields, message) => line("warn", fields, message),
    error: (fields, message) => line("error", fields, message),
  };
}

function formatFields(fields: LogFields): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => {
      const text = String(value);
      return ` ${name}=${/[\s"=]/.test(text) || text === "" ? JSON.stringify(text) : text}`;
    })
    .join("");
}

/** Integers of 64 bits go out as text: JSON numbers end at 2^53. */
function toJsonFields(fields: LogFields): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === "bigint" ? String(value) : value,
    ]),
  );
}

function createJsonLogger(level: LogLevel): Logger {
  const destination = pino.destination({ dest: 2, sync: true });
  // A lost log line stops nothing.
  destination.on("error", () => undefined);
  const out = pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  return {
    debug: (fields, message) => out.debug(toJsonFields(fields), message),
    info: (fields, message) => out.info(toJsonFields(fields), message),
    warn: (fields, message) => out.warn(toJsonFields(fields), message),
    error: (fields, message) => out.error(toJsonFields(fields), message),
  };
}
