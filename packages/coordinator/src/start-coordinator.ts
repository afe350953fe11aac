import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { BelayError, type Clock, type Logger, type Random } from "@belay/model";
import {
  COORDINATOR_LIMITS,
  type CoordinatorLimits,
  type CoordinatorStats,
  createCoordinator,
  type Effect,
  type Store,
} from "@belay/ownership";
import { CoordinatorMetrics } from "./metrics.ts";
import { Peers } from "./peers.ts";
import { WriterLoop } from "./writer-loop.ts";

/** Longest time from a clock read to the act that relies on it, by default. */
const MARGIN_MS = 200;
const LISTEN_BACKLOG = 4096;

export interface CoordinatorOptions {
  /** Open, and used by nobody else; closing it stays with the caller. */
  readonly store: Store;
  /** Runs in suspend (S6): `createBootClock()`. */
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Port 0: any free one. */
  readonly listen: { readonly host: string; readonly port: number };
  /** What peers must say in Hello; needed to listen beyond loopback. */
  readonly token?: string;
  /** ≥ 200 ms outside tests. */
  readonly marginMs?: number;
  readonly limits?: Partial<CoordinatorLimits>;
  /** Deposed, or the outcome of a commit stayed unknown: end the process with an error (T1, T3). */
  onExit(exit: { readonly code: Extract<Effect, { type: "exit" }>["code"]; message: string }): void;
}

export interface RunningCoordinator {
  readonly address: { readonly host: string; readonly port: number };
  /** For /healthz and the log: what it knows, and what S4 and P6 still wait (`holdLeftMs`). */
  status(): CoordinatorStats;
  /** Prometheus text. */
  metrics(): Promise<string>;
  /** Answers what is committed, closes all connections. Safe to call twice. */
  close(): Promise<void>;
}

/**
 * Takes the store over (T1), loads it and serves the coordinator protocol. Rejects with a BelayError
 * (`port-in-use`, `token-needed`) or a StoreProblem, each of which says what to do.
 */
export async function startCoordinator(options: CoordinatorOptions): Promise<RunningCoordinator> {
  const { store, clock, random, logger } = options;
  const { host, port } = options.listen;
  if (!isLoopback(host) && (options.token ?? "") === "") {
    throw new BelayError("token-needed", `the coordinator would listen on ${host} without a token`);
  }
  // Listening first: a port in use must not depose the coordinator that uses it.
  const server = createServer({ pauseOnConnect: true, noDelay: true });
  // Who connects while the store loads is served after it.
  const early: Socket[] = [];
  server.on("connection", (socket) => early.push(socket));
  await listen(server, host, port);
  try {
    const meta = await store.takeOver(Math.floor(Date.now() / 1000));
    const rows = await store.load();
    const machine = createCoordinator(
      {
        clock,
        random,
        logger,
        marginMs: options.marginMs ?? MARGIN_MS,
        storeName: store.name,
        storeExclusive: store.exclusive,
        ...(options.limits === undefined ? {} : { limits: options.limits }),
      },
      { meta, rows },
    );
    server.removeAllListeners("connection");
    return serve({ server, early }, options, machine);
  } catch (error) {
    server.close();
    for (const socket of early) socket.destroy();
    throw error;
  }
}

function serve(
  { server, early }: { server: Server; early: readonly Socket[] },
  options: CoordinatorOptions,
  machine: ReturnType<typeof createCoordinator>,
): RunningCoordinator {
  const { store, clock, logger } = options;
  const metrics = new CoordinatorMetrics();
  const peers = new Peers({
    logger,
    token: options.token ?? "",
    peersMax: options.limits?.peers ?? COORDINATOR_LIMITS.peers,
    handler: {
      connected: (peer) => loop.handle({ type: "connected", peer }),
      frame: (peer, frame) => loop.handle({ type: "frame", peer, frame }),
      disconnected: (peer) => loop.handle({ type: "disconnected", peer }),
    },
  });
  metrics.observe(() => machine.stats(), peers);
  const loop = new WriterLoop({
    machine,
    store,
    peers,
    metrics,
    clock,
    logger,
    onExit: ({ code, message }) => {
      server.close();
      logger.error({ code }, message);
      options.onExit({ code, message });
    },
  });
  for (const socket of early) peers.accept(socket);
  server.on("connection", (socket) => peers.accept(socket));
  const address = listeningAddress(server);
  const { term, revision, holdLeftMs, servers, shards } = machine.stats();
  const fields = {
    ...address,
    term,
    revision,
    holdLeftMs: Math.round(holdLeftMs),
    servers,
    shards,
  };
  logger.info(fields, "coordinator listens");
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    const closed = once(server, "close");
    server.close();
    await loop.stop();
    peers.closeAll();
    await closed;
  };
  return {
    address,
    status: () => machine.stats(),
    metrics: async () => metrics.registry.metrics(),
    close: async () => (closing ??= close()),
  };
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  server.listen({ host, port, backlog: LISTEN_BACKLOG });
  try {
    await once(server, "listening");
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE") {
      const message = `${host}:${port} is in use, the coordinator cannot listen there`;
      throw new BelayError("port-in-use", message, { cause });
    }
    throw cause;
  }
}

function listeningAddress(server: Server): { host: string; port: number } {
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("not a TCP listener");
  return { host: address.address, port: address.port };
}

const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
