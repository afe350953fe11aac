import { simulate } from "@belay/simulator";
const from = Number(process.argv[2] ?? 1),
  n = Number(process.argv[3] ?? 20);
for (const guarded of [true, false]) {
  let t = performance.now(),
    steps = 0,
    bad = 0,
    ans = 0;
  for (let s = from; s < from + n; s++) {
    const r = simulate({ seed: s, guarded });
    steps += r.steps;
    ans += r.answers;
    if (r.violation) {
      bad++;
      if (bad <= 3) console.log(guarded, s, r.violation.message, r.notes.slice(-6).join("\n   "));
    }
  }
  console.log(
    guarded,
    "bad",
    bad,
    "of",
    n,
    "steps",
    steps,
    "answers",
    ans,
    Math.round(performance.now() - t),
    "ms",
  );
}
