import { OpenLoop, pause, type Reply, until } from "@belay/testkit";
import { BenchEdge, type ServerKind } from "../edge/bench-edge.ts";
import type { CaseResult, Row } from "../report.ts";
import { quantile } from "../statistics.ts";
import type { CaseContext } from "./context.ts";

const MOVES = 60;
/** A request every 2 ms. */
const RATE = 500;
/** What is watched after a move is over, and before the next. */
const SETTLE_MS = 150;
const FAILURES_KEPT = 10;

interface Gaps {
  /** Longest time without an answer, per move. */
  readonly moveMs: readonly number[];
  /** The same in as long a time without a move. */
  readonly restMs: readonly number[];
  readonly failed: number;
  readonly sent: number;
  /** Some of the failed ones. */
  readonly failures: readonly unknown[];
}

/** B6: the gap that a key's client sees when the key is moved. */
export async function benchPlannedMove(context: CaseContext): Promise<CaseResult> {
  const rows: Row[] = [];
  const raw: Partial<Record<ServerKind, Gaps>> = {};
  for (const servers of ["unguarded", "guarded"] as const) {
    const edge = await BenchEdge.start(context.tools, { isPinned: false, servers });
    try {
      const gaps = await measureMoves(edge);
      raw[servers] = gaps;
      rows.push(toRow(servers, gaps));
    } finally {
      await edge.stop();
    }
  }
  return { rows, raw };
}

function toRow(servers: ServerKind, { moveMs, restMs, failed, sent }: Gaps): Row {
  const words = servers === "guarded" ? "SDK servers" : "servers under belay run";
  const inMs = (values: readonly number[]): string =>
    `p50 ${quantile(values, 0.5).toFixed(0)} ms, p99 ${quantile(values, 0.99).toFixed(0)} ms`;
  return {
    id: "B6",
    what: `longest gap per move, ${MOVES} moves, ${words}`,
    value: `${inMs(moveMs)}; ${failed} of ${sent} requests failed`,
    beside: `without a move ${inMs(restMs)}`,
    target: "no failed request",
    isMet: failed === 0,
  };
}

async function measureMoves(edge: BenchEdge): Promise<Gaps> {
  const arrivedMs: number[] = [];
  const load = new OpenLoop({
    port: edge.port,
    ratePerSecond: RATE,
    next: () => ({ path: "/s/mover/" }),
    isGood: (reply: Reply) => {
      arrivedMs.push(reply.startedAtMs + reply.tookMs);
      return reply.status === 200;
    },
  });
  await until("requests are answered", () => load.good > RATE);
  const moveMs: number[] = [];
  const restMs: number[] = [];
  for (let move = 0; move < MOVES; move += 1) {
    const startMs = performance.now();
    await moveOnce(edge);
    await pause(SETTLE_MS);
    const middleMs = performance.now();
    await pause(middleMs - startMs);
    moveMs.push(longestGap(arrivedMs, startMs, middleMs));
    restMs.push(longestGap(arrivedMs, middleMs, performance.now()));
  }
  await load.stop();
  const { sent, good, bad } = load;
  return { moveMs, restMs, failed: sent - good, sent, failures: bad.slice(0, FAILURES_KEPT) };
}

/** Longest time between two answers, counted from the last one before `fromMs`. */
function longestGap(arrivedMs: readonly number[], fromMs: number, toMs: number): number {
  const inside = arrivedMs.filter((at) => at > fromMs && at <= toMs).toSorted((a, b) => a - b);
  const before = Math.max(...arrivedMs.slice(-100_000).filter((at) => at <= fromMs));
  let longest = 0;
  let last = before;
  for (const at of [...inside, toMs]) {
    longest = Math.max(longest, at - last);
    last = at;
  }
  return longest;
}

/** Orders the move of the key to wherever placement wants it; settles when it has another owner. */
async function moveOnce(edge: BenchEdge): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${edge.belay.ports.api}/v1/moves`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ service: "bench", key: "mover" }),
  });
  const answer = (await response.json()) as { from?: string };
  if (response.status !== 202) throw new Error(`the move was refused: ${JSON.stringify(answer)}`);
  await until("the key has another owner", async () => {
    const owner = (await edge.belay.api("/v1/owner?service=bench&key=mover")) as {
      state: string;
      server: string;
    };
    return owner.state === "owned" && owner.server !== answer.from;
  });
}
