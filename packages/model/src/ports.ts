/** A clock that never goes back and runs while the machine is suspended (S6). Milliseconds, fractions allowed. */
export interface Clock {
  now(): number;
}

/** A source of randomness: seeded in the simulator, the system's in production. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** `length` random bytes. */
  bytes(length: number): Uint8Array;
}

export type LogFields = Readonly<Record<string, string | number | boolean | bigint | undefined>>;

/** Structured log, one line per state change. `fields` first, as pino has it. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}
