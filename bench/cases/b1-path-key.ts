import { compare, type Measured, measureInterleaved, type Variant } from "../load/interleaved.ts";
import { onSmallPages } from "../edge/filled-edge.ts";
import { GUARDED_HOST } from "../edge/bench-edge.ts";
import type { CaseResult, Row } from "../report.ts";
import { describe, formatRatio, rowOf } from "./ratio-rows.ts";
import type { CaseContext } from "./context.ts";

const OF_PLAIN_MIN = 0.85;
const OF_EMPTY_MIN = 0.97;

/** B1: key in the path, requests per CPU second beside other ways to route. */
export async function benchPathKey(context: CaseContext): Promise<CaseResult> {
  const filled = await context.filledEdge();
  const { edge, keys, guardedKeys } = filled;
  const rivals = await context.rivals();
  const own: Variant = {
    name: "Belay, path key",
    port: edge.port,
    kind: "path",
    pid: edge.envoyPid,
  };
  const guarded: Variant = {
    ...own,
    name: `Belay, guarded service, ${guardedKeys} keys`,
    host: GUARDED_HOST,
    keys: guardedKeys,
  };
  const small = onSmallPages(own, filled);
  const measured = await measureInterleaved(
    [own, guarded, small, ...rivals.pathVariants()],
    context.options,
  );
  const [belay, beside, off, plain, empty, ...others] = measured;
  if (!belay || !beside || !off || !plain || !empty) throw new Error("nothing ran");
  const toPlain = compare(belay, plain);
  const toEmpty = compare(belay, empty);
  const rows: Row[] = [
    rowOf("B1", plain),
    rowOf("B1", empty, formatRatio(compare(empty, plain), "plain")),
    {
      ...rowOf("B1", belay, formatRatio(toPlain, "plain")),
      target: `≥ ${OF_PLAIN_MIN} of plain`,
      isMet: toPlain.median >= OF_PLAIN_MIN,
    },
    rowOf("B1", beside, formatRatio(compare(beside, plain), "plain")),
    rowOf("B1", off, formatRatio(compare(off, plain), "plain")),
    {
      id: "B1",
      what: "Belay beside the empty module",
      value: formatRatio(toEmpty, "empty"),
      target: `aim ≥ ${OF_EMPTY_MIN}`,
      isMet: toEmpty.median >= OF_EMPTY_MIN,
    },
    ...others.map((other) => besideRival(belay, other, plain)),
    ...(context.tools.haproxy === undefined ? [haproxyMissing] : []),
  ];
  return { rows, raw: { keys, variants: measured.map(describe) } };
}

const haproxyMissing: Row = {
  id: "B1",
  what: "HAProxy, stick table",
  value: "not run: needs haproxy",
};

/** Ahead of Lua and ext_proc is asked for; how Belay stands beside the rest is said. */
function besideRival(belay: Measured, other: Measured, plain: Measured): Row {
  const row = rowOf("B1", other, formatRatio(compare(other, plain), "plain"));
  if (!/^(Lua|ext_proc)/.test(other.variant.name)) return row;
  const ahead = compare(belay, other).median;
  return { ...row, target: `Belay ahead (${ahead.toFixed(2)}×)`, isMet: ahead > 1 };
}
