import { simulate } from "@belay/simulator";
import * as P from "./plants.ts";
const list: [string, boolean, () => any][] = [
  ["S2", true, P.leaseFromAnswer],
  ["S4", true, P.noWaitAfterRestart],
  ["M4", false, P.doesNotWaitForQuiet],
  ["P6", false, P.waitsLessThanFeedLease],
  ["S1", true, P.renewsTheExpired],
  ["M3", true, P.releaseTakenBack],
  ["I3", true, P.counterPerKey],
  ["T2", true, P.answersBeforeCommit],
  ["T4", true, P.losesTail],
  ["T2u", false, P.answersBeforeCommit],
  ["T4u", false, P.losesTail],
];
for (const [n, g, f] of list) {
  const out: string[] = [];
  for (let s = 1; s <= 12; s++) {
    const t = performance.now();
    const r = simulate({ seed: s, guarded: g, durationMs: 5000 }, f());
    out.push(
      r.violation ? `${s}:${r.violation.rule}(${Math.round(performance.now() - t)})` : `${s}:-`,
    );
  }
  console.log(n, out.join(" "));
}
