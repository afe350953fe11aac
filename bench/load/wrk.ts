import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

export type LoadKind = "path" | "header" | "session" | "envelope";

export interface Load {
  readonly port: number;
  readonly kind: LoadKind;
  readonly keys: number;
  readonly seconds: number;
  readonly connections: number;
  /** Host header; by default localhost. */
  readonly host?: string;
  /** `session` only: x-session of the key, by key modulo their number. */
  readonly tokens?: readonly string[];
}

export interface LoadResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** Answers other than 2xx and 3xx, and requests without one. */
  readonly failed: number;
}

/**
 * Connections of a fill. What Belay is measured beside gets such a burst too: it leaves an Envoy's heap in pieces,
 * and all that comes after is dearer.
 */
export const FILL_CONNECTIONS = 512;
/** Keys of what is there to compare one cost: the second million would only take time. */
export const BESIDE_KEYS_MAX = 100_000;

const script = join(import.meta.dirname, "request.lua");
const GRACE_MS = 30_000;

/** Closed-loop load of one thread; settles when it is over. */
export async function runLoad(load: Load): Promise<LoadResult> {
  const stdout = await runWrk(load);
  const numbers =
    /^result requests=(\d+) duration_us=(\d+) p50_us=(\d+) p99_us=(\d+) bad=(\d+) cut=(\d+)$/m
      .exec(stdout)
      ?.slice(1)
      .map(Number);
  if (numbers === undefined) throw new Error(`wrk said nothing of its result:\n${stdout}`);
  const [requests = 0, durationUs = 0, p50Us = 0, p99Us = 0, bad = 0, cut = 0] = numbers;
  return { requests, perSecond: (requests / durationUs) * 1e6, p50Us, p99Us, failed: bad + cut };
}

/** Requests every key once, in order; settles when that is done, or fails after `secondsMax`. */
export async function requestEachKey(
  load: Pick<Load, "port" | "keys" | "connections" | "host">,
  secondsMax: number,
): Promise<void> {
  const stdout = await runWrk({ ...load, kind: "fill", seconds: secondsMax });
  if (stdout.includes("result ")) {
    throw new Error(`${load.keys} keys took longer than ${secondsMax} s:\n${stdout}`);
  }
}

async function runWrk(load: Omit<Load, "kind"> & { readonly kind: string }): Promise<string> {
  const { port, kind, keys, seconds, connections, tokens = [], host = "localhost" } = load;
  const seed = Math.floor(Math.random() * 2 ** 31);
  const { stdout } = await promisify(execFile)(
    "wrk",
    [
      "-t1",
      `-c${connections}`,
      `-d${seconds}s`,
      "-s",
      script,
      `http://127.0.0.1:${port}`,
      "--",
      kind,
      String(keys),
      String(seed),
      host,
      ...tokens,
    ],
    { timeout: seconds * 1000 + GRACE_MS },
  );
  return stdout;
}
