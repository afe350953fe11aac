import type { Measured, Ratio } from "../load/interleaved.ts";
import type { CaseId } from "../options.ts";
import type { Row } from "../report.ts";
import { median } from "../statistics.ts";

/** `0.91 of plain [0.93]`: median within rounds, best turn against best turn in brackets. */
export const formatRatio = (ratio: Ratio, base: string): string =>
  `${ratio.median.toFixed(2)} of ${base} [${ratio.best.toFixed(2)}]`;

/** One variant's medians. */
export function rowOf(id: CaseId, measured: Measured, beside?: string): Row {
  const { cpuUs, helperCpuUs, perSecond, p50Us, p99Us, failed } = summarize(measured);
  const helper = helperCpuUs > 0 ? ` + ${helperCpuUs.toFixed(0)} beside it` : "";
  const value = `${thousands(1e6 / cpuUs)} req/CPU-s (${cpuUs.toFixed(1)} µs${helper}); ${thousands(perSecond)} req/s, p50 ${toMs(p50Us)}, p99 ${toMs(p99Us)} ms`;
  const what = failed === 0 ? measured.variant.name : `${measured.variant.name} (${failed} failed)`;
  return { id, what, value, ...(beside === undefined ? {} : { beside }) };
}

/** For the results file. */
export const describe = ({ variant, turns }: Measured): unknown => ({
  name: variant.name,
  median: summarize({ variant, turns }),
  turns,
});

function summarize({
  turns,
}: Measured): Record<"cpuUs" | "helperCpuUs" | "perSecond" | "p50Us" | "p99Us" | "failed", number> {
  return {
    cpuUs: median(turns.map((turn) => turn.cpuUs)),
    helperCpuUs: median(turns.map((turn) => turn.helperCpuUs)),
    perSecond: median(turns.map((turn) => turn.perSecond)),
    p50Us: median(turns.map((turn) => turn.p50Us)),
    p99Us: median(turns.map((turn) => turn.p99Us)),
    failed: turns.reduce((sum, turn) => sum + turn.failed, 0),
  };
}

const thousands = (value: number): string => `${(value / 1000).toFixed(1)} k`;
const toMs = (us: number): string => (us / 1000).toFixed(2);
