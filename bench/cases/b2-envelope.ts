import { onSmallPages } from "../edge/filled-edge.ts";
import { compare, measureInterleaved, type Variant } from "../load/interleaved.ts";
import type { CaseResult } from "../report.ts";
import { describe, formatRatio, rowOf } from "./ratio-rows.ts";
import type { CaseContext } from "./context.ts";

const OF_PLAIN_MIN = 0.8;

/** B2: key in the protobuf envelope of a 200-byte POST, requests per CPU second. */
export async function benchEnvelope(context: CaseContext): Promise<CaseResult> {
  const filled = await context.filledEdge();
  const { edge } = filled;
  const rivals = await context.rivals();
  const { port, envoyPid: pid } = edge;
  const own: Variant = { name: "Belay, envelope in a POST", port, kind: "envelope", pid };
  const small = onSmallPages(own, filled);
  const variants = [own, small, ...rivals.postVariants()];
  const measured = await measureInterleaved(variants, context.options);
  const [belay, off, plain, empty] = measured;
  if (!belay || !off || !plain || !empty) throw new Error("nothing ran");
  const toPlain = compare(belay, plain);
  return {
    rows: [
      rowOf("B2", plain),
      rowOf("B2", empty, formatRatio(compare(empty, plain), "plain")),
      {
        ...rowOf("B2", belay, formatRatio(toPlain, "plain")),
        target: `≥ ${OF_PLAIN_MIN} of plain`,
        isMet: toPlain.median >= OF_PLAIN_MIN,
      },
      rowOf("B2", off, formatRatio(compare(off, plain), "plain")),
    ],
    raw: { variants: measured.map(describe) },
  };
}
