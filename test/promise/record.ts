import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** One run of a handler, as the server that ran it wrote it down. */
export interface Run {
  readonly server: string;
  readonly key: string;
  readonly epoch: string;
  /** CLOCK_MONOTONIC in ns, the same for all processes of a machine. */
  readonly start: bigint;
  readonly end: bigint;
}

/** Appends to a file that several processes share: a line is one write. */
export class Recorder {
  readonly #file: string;
  readonly #server: string;

  constructor(file: string, server: string) {
    this.#file = file;
    this.#server = server;
  }

  write(key: string, epoch: bigint | string, start: bigint): void {
    const end = process.hrtime.bigint();
    appendFileSync(this.#file, `${this.#server}\t${key}\t${epoch}\t${start}\t${end}\n`);
  }
}

export function readRuns(file: string): Run[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [server = "", key = "", epoch = "", start = "0", end = "0"] = line.split("\t");
      return { server, key, epoch, start: BigInt(start), end: BigInt(end) };
    });
}

/**
 * What breaks single ownership: two servers in one key at the same time (I1), or an epoch that falls
 * (I3). Empty when all is well.
 */
export function findBreaches(runs: readonly Run[]): string[] {
  const breaches: string[] = [];
  const byKey = Map.groupBy(runs, ({ key }) => key);
  for (const [key, all] of byKey) {
    const sorted = all.toSorted((a, b) => (a.start < b.start ? -1 : 1));
    let open: Run | undefined;
    for (const run of sorted) {
      if (open !== undefined && run.server !== open.server) {
        if (run.start < open.end) breaches.push(`${key}: ${open.server} and ${run.server} overlap`);
        if (BigInt(run.epoch) <= BigInt(open.epoch)) {
          breaches.push(`${key}: epoch ${run.epoch} at ${run.server} after ${open.epoch}`);
        }
      }
      if (open === undefined || run.end >= open.end || run.server !== open.server) open = run;
    }
  }
  return breaches;
}
