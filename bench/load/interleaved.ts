import { cpuMicros } from "../machine/process-facts.ts";
import { median, shuffled } from "../statistics.ts";
import { type LoadKind, runLoad } from "./wrk.ts";

const CONNECTIONS = 16;
const WARM_UP_SECONDS = 1;

/** Something that forwards requests, and how it is loaded. */
export interface Variant {
  readonly name: string;
  readonly port: number;
  readonly kind: LoadKind;
  /** The process whose CPU time counts. */
  readonly pid: number;
  /** A process beside it that each request goes to as well; reported apart. */
  readonly helperPid?: number;
  readonly tokens?: readonly string[];
  readonly host?: string;
  /** By default those of all variants. */
  readonly keys?: number;
}

/** One variant's turn in one round. */
interface Turn {
  readonly round: number;
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly helperCpuUs: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly failed: number;
}

export interface Measured {
  readonly variant: Variant;
  readonly turns: readonly Turn[];
}

/** Requests per CPU second of one variant beside another's: over 1, the first is cheaper. */
export interface Ratio {
  /** Median of the ratios within a round. */
  readonly median: number;
  /** Best turn against best turn. */
  readonly best: number;
}

/** Runs every variant once a round, in a new order each time, after a warm-up of each. */
export async function measureInterleaved(
  variants: readonly Variant[],
  options: { readonly rounds: number; readonly seconds: number; readonly keys: number },
): Promise<Measured[]> {
  const turns = new Map(variants.map((variant) => [variant, [] as Turn[]]));
  for (const variant of variants)
    await takeTurn(variant, 0, { ...options, seconds: WARM_UP_SECONDS });
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const variant of shuffled(variants)) {
      turns.get(variant)?.push(await takeTurn(variant, round, options));
    }
  }
  return [...turns].map(([variant, its]) => ({ variant, turns: its }));
}

async function takeTurn(
  variant: Variant,
  round: number,
  { seconds, keys }: { readonly seconds: number; readonly keys: number },
): Promise<Turn> {
  const { port, kind, pid, helperPid, tokens, host } = variant;
  const helperCpu = (): number => (helperPid === undefined ? 0 : cpuMicros(helperPid));
  const [before, helperBefore] = [cpuMicros(pid), helperCpu()];
  const load = { port, kind, keys: variant.keys ?? keys, seconds, connections: CONNECTIONS };
  const result = await runLoad({
    ...load,
    ...(tokens === undefined ? {} : { tokens }),
    ...(host === undefined ? {} : { host }),
  });
  const { requests, perSecond, p50Us, p99Us, failed } = result;
  return {
    round,
    perSecond,
    cpuUs: (cpuMicros(pid) - before) / requests,
    helperCpuUs: (helperCpu() - helperBefore) / requests,
    p50Us,
    p99Us,
    failed,
  };
}

/** How `measured` does beside `base`, in requests per CPU second. */
export function compare(measured: Measured, base: Measured): Ratio {
  const cpu = (it: Measured): number[] => it.turns.map(({ cpuUs }) => cpuUs);
  const [own, other] = [cpu(measured), cpu(base)];
  return {
    median: median(own.map((value, at) => (other[at] ?? Number.NaN) / value)),
    best: Math.min(...other) / Math.min(...own),
  };
}
