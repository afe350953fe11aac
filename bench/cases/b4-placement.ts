import { OpenLoop, pause, type Reply } from "@belay/testkit";
import { BenchEdge } from "../edge/bench-edge.ts";
import { PlacingPeer } from "../edge/placing-peer.ts";
import type { CaseResult, Row } from "../report.ts";
import { quantile } from "../statistics.ts";
import type { CaseContext } from "./context.ts";

const RATE = 2000;
const SECONDS = 10;
const IN_FLIGHT = 4000;
const SATURATED_SECONDS = 8;

interface Latencies {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failed: number;
}

/** B4: how long new keys take at 2,000/s, and how many can be placed durably at most. */
export async function benchPlacement(context: CaseContext): Promise<CaseResult> {
  const edge = await BenchEdge.start(context.tools, { isPinned: false });
  try {
    const known = await request(edge, () => "/s/known/");
    const fresh = await request(edge, (index) => `/s/new-${index}/`);
    const peer = await PlacingPeer.connect(edge.belay.ports.coordinator);
    const direct = await placeAtRate(peer);
    const most = await placeSaturated(peer);
    peer.close();
    const through = `${ms(known)} for one known key at the same rate`;
    const rows: Row[] = [
      row(`new keys at ${RATE}/s through the edge`, `${ms(fresh)}${failures(fresh)}`, through),
      row(`new keys at ${RATE}/s, asked of the coordinator`, `${ms(direct)}${failures(direct)}`),
      row(
        `most durable placements (SQLite), ${IN_FLIGHT} in flight`,
        `${most.perSecond.toFixed(0)}/s${failures(most)}`,
        ms(most),
      ),
    ];
    return { rows, raw: { known, fresh, direct, most } };
  } finally {
    await edge.stop();
  }
}

const row = (what: string, value: string, beside = ""): Row => ({ id: "B4", what, value, beside });
const ms = ({ p50Ms, p99Ms }: Latencies): string =>
  `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`;
const failures = ({ failed }: Latencies): string => (failed === 0 ? "" : ` (${failed} failed)`);

async function request(edge: BenchEdge, path: (index: number) => string): Promise<Latencies> {
  const load = new OpenLoop({
    port: edge.port,
    ratePerSecond: RATE,
    next: (index) => ({ path: path(index) }),
    isGood: ({ status }: Reply) => status === 200,
  });
  const startedMs = performance.now();
  await pause(SECONDS * 1000);
  await load.stop();
  return summarize(load.tookMs, load.sent - load.good, performance.now() - startedMs);
}

async function placeAtRate(peer: PlacingPeer): Promise<Latencies> {
  const tookMs: number[] = [];
  const flights: Promise<void>[] = [];
  let failed = 0;
  const startedMs = performance.now();
  for (let sent = 0; sent < RATE * SECONDS;) {
    const due = ((performance.now() - startedMs) / 1000) * RATE;
    for (; sent < Math.min(due, RATE * SECONDS); sent += 1) {
      const askedMs = performance.now();
      const flight = peer.place(`direct-${sent}`).then(
        (isPlaced) => {
          if (isPlaced) tookMs.push(performance.now() - askedMs);
          else failed += 1;
        },
        () => {
          failed += 1;
        },
      );
      flights.push(flight);
    }
    await pause(1);
  }
  await Promise.all(flights);
  return summarize(tookMs, failed, performance.now() - startedMs);
}

async function placeSaturated(peer: PlacingPeer): Promise<Latencies> {
  const tookMs: number[] = [];
  let failed = 0;
  let next = 0;
  const startedMs = performance.now();
  const endMs = startedMs + SATURATED_SECONDS * 1000;
  const worker = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const askedMs = performance.now();
      const key = `most-${next}`;
      next += 1;
      if (await peer.place(key).catch(() => false)) tookMs.push(performance.now() - askedMs);
      else failed += 1;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  return summarize(tookMs, failed, performance.now() - startedMs);
}

const summarize = (tookMs: readonly number[], failed: number, overMs: number): Latencies => ({
  perSecond: (tookMs.length / overMs) * 1000,
  p50Ms: quantile(tookMs, 0.5),
  p99Ms: quantile(tookMs, 0.99),
  failed,
});
