import type { CoordinatorStats } from "@belay/ownership";
import { type FrameBodyInit, ResolveOutcome } from "@belay/protocol";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Peers } from "./peers.ts";

const LATENCY_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

const resolveOutcomes: ReadonlyMap<ResolveOutcome | undefined, string> = new Map([
  [ResolveOutcome.OWNER, "owner"],
  [ResolveOutcome.MOVING, "moving"],
  [ResolveOutcome.NO_SERVER, "no-server"],
  [ResolveOutcome.FULL, "full"],
  [ResolveOutcome.UNKNOWN_KEY, "unknown-key"],
  [ResolveOutcome.SERVICE_UNKNOWN, "service-unknown"],
  [ResolveOutcome.NOT_YET, "not-yet"],
]);

/** Numbers that the machine counts itself, read at each scrape: name, help, where they are. */
const gauges: readonly [string, string, (stats: CoordinatorStats) => number][] = [
  ["term", "Term of this coordinator (T1).", (stats) => Number(stats.term)],
  ["revision", "Committed revision.", (stats) => Number(stats.revision)],
  ["services", "Services defined.", (stats) => stats.services],
  ["servers", "Servers registered.", (stats) => stats.servers],
  ["shards", "Shards that have a row.", (stats) => stats.shards],
  ["proxies", "Proxies that count for M4.", (stats) => stats.proxies],
  ["moving", "Shards on the move.", (stats) => stats.moving],
  ["waiting_events", "Events that wait for a commit.", (stats) => stats.waitingEvents],
  ["pending_resolves", "Resolves and mints not yet answered.", (stats) => stats.pendingResolves],
  ["hold_left_seconds", "What S4 and P6 still wait.", (stats) => stats.holdLeftMs / 1000],
];
const counters: readonly [string, string, (stats: CoordinatorStats) => number][] = [
  ["placements_total", "Shards placed.", (stats) => stats.placements],
  ["moves_total", "Moves begun.", (stats) => stats.moves],
  ["expirations_total", "Server leases that ended (S3).", (stats) => stats.expiries],
  ["renewals_total", "Server leases renewed.", (stats) => stats.renewals],
  ["store_went_back_total", "Peers that had seen more than the store (T4).", storeWentBack],
];

function storeWentBack(stats: CoordinatorStats): number {
  return stats.storeWentBack;
}

/** What a coordinator measures of itself; `belay_coordinator_*`, label sets fixed. */
export class CoordinatorMetrics {
  readonly registry = new Registry();
  readonly #commitSeconds: Histogram<"outcome">;
  readonly #turnSeconds: Histogram;
  readonly #resolves: Counter<"outcome">;
  readonly #feedBatches: Counter;
  readonly #feedEntries: Counter;

  constructor() {
    const registers = [this.registry];
    this.#commitSeconds = new Histogram({
      name: "belay_coordinator_commit_seconds",
      help: "Time that the store took for a commit.",
      labelNames: ["outcome"],
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.#turnSeconds = new Histogram({
      name: "belay_coordinator_turn_seconds",
      help: "Time to carry out what one turn of the event loop brought.",
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.#resolves = new Counter({
      name: "belay_coordinator_resolves_total",
      help: "Resolves answered.",
      labelNames: ["outcome"],
      registers,
    });
    this.#feedBatches = new Counter({
      name: "belay_coordinator_feed_batches_total",
      help: "Feed batches broadcast.",
      registers,
    });
    this.#feedEntries = new Counter({
      name: "belay_coordinator_feed_entries_total",
      help: "Entries in the feed batches broadcast.",
      registers,
    });
    for (const outcome of resolveOutcomes.values()) this.#resolves.inc({ outcome }, 0);
  }

  /** Also shows, at each scrape, what the machine and the sockets count. */
  observe(stats: () => CoordinatorStats, peers: Peers): void {
    const registers = [this.registry];
    for (const [name, help, read] of gauges) {
      const gauge: Gauge = new Gauge({
        name: `belay_coordinator_${name}`,
        help,
        registers,
        collect: () => gauge.set(read(stats())),
      });
    }
    for (const [name, help, read] of counters) {
      const counter: Counter = new Counter({
        name: `belay_coordinator_${name}`,
        help,
        registers,
        collect: () => {
          counter.reset();
          counter.inc(read(stats()));
        },
      });
    }
    this.#observePeers(peers);
  }

  commitTook(ms: number, outcome: string): void {
    this.#commitSeconds.observe({ outcome }, ms / 1000);
  }

  turnTook(ms: number): void {
    this.#turnSeconds.observe(ms / 1000);
  }

  sent(frame: FrameBodyInit): void {
    if (frame.case !== "resolved") return;
    this.#resolves.inc({ outcome: resolveOutcomes.get(frame.value.outcome) ?? "unspecified" });
  }

  broadcast(frame: FrameBodyInit): void {
    if (frame.case !== "feedBatch") return;
    this.#feedBatches.inc();
    this.#feedEntries.inc(frame.value.entries?.length ?? 0);
  }

  #observePeers(peers: Peers): void {
    const registers = [this.registry];
    const connected: Gauge<"role"> = new Gauge({
      name: "belay_coordinator_peers",
      help: "Peers connected.",
      labelNames: ["role"],
      registers,
      collect: () => {
        for (const [role, count] of peers.countByRole()) connected.set({ role }, count);
      },
    });
    const ended: Counter<"end"> = new Counter({
      name: "belay_coordinator_connections_ended_total",
      help: "Connections ended; slow-reader: cut because it did not read (F2).",
      labelNames: ["end"],
      registers,
      collect: () => {
        ended.reset();
        for (const [end, count] of peers.ends) ended.inc({ end }, count);
      },
    });
  }
}
