import { BelayUnderTest, fire, pause } from "@belay/testkit";
import type { CaseResult } from "../report.ts";
import { median } from "../statistics.ts";
import type { CaseContext } from "./context.ts";

const STARTS = 7;
const POLL_MS = 5;
const START_MS_MAX = 60_000;
const TARGET_MS = 5000;

/** B5: `belay up --demo` from its start to the first routed request, again and again in one data folder. */
export async function benchWarmStart(_context: CaseContext): Promise<CaseResult> {
  const belay = await BelayUnderTest.create({});
  try {
    const fresh = await startOnce(belay);
    const tookMs: number[] = [];
    for (let start = 0; start < STARTS; start += 1) tookMs.push(await startOnce(belay));
    return {
      rows: [
        {
          id: "B5",
          what: `belay up --demo to the first routed request, ${STARTS} starts`,
          value: `median ${(median(tookMs) / 1000).toFixed(2)} s (${seconds(Math.min(...tookMs))} to ${seconds(Math.max(...tookMs))} s)`,
          beside: `with an empty data folder ${seconds(fresh)} s`,
          target: `≤ ${TARGET_MS / 1000} s`,
          isMet: median(tookMs) <= TARGET_MS,
        },
      ],
      raw: { freshMs: fresh, tookMs },
    };
  } finally {
    await belay.stop();
  }
}

const seconds = (ms: number): string => (ms / 1000).toFixed(2);

async function startOnce(belay: BelayUnderTest): Promise<number> {
  const startedMs = performance.now();
  const up = belay.belay("up", ["up", "--demo"]);
  try {
    for (;;) {
      const reply = await fire(belay.ports.edge, { path: "/s/ann/" }).catch(() => undefined);
      if (reply?.status === 200) return performance.now() - startedMs;
      if (!up.running || performance.now() - startedMs > START_MS_MAX) {
        throw new Error(`belay up did not route a request:\n${up.output.slice(-4000)}`);
      }
      await pause(POLL_MS);
    }
  } finally {
    await up.stop();
  }
}
