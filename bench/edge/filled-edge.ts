import type { Variant } from "../load/interleaved.ts";
import { residentBytes } from "../machine/process-facts.ts";
import type { Tools } from "../machine/tools.ts";
import { BESIDE_KEYS_MAX, FILL_CONNECTIONS, requestEachKey, runLoad } from "../load/wrk.ts";
import { BenchEdge, type EnvoyUnderBench, GUARDED_HOST } from "./bench-edge.ts";

const FILL_SECONDS_MAX = 600;

/** The edge's memory at one moment. */
interface Footprint {
  readonly entries: number;
  readonly mapBytes: number;
  readonly residentBytes: number;
}

/** An edge that knows the owner of each of `keys` keys. */
export interface FilledEdge {
  readonly edge: BenchEdge;
  readonly keys: number;
  /** Of the guarded service; the other has all. */
  readonly guardedKeys: number;
  /** A second edge in small pages, which knows the first `guardedKeys` of them. */
  readonly inSmallPages: EnvoyUnderBench;
  readonly before: Footprint;
  readonly after: Footprint;
  readonly seconds: number;
}

/** One worker on a core of its own; every key was requested through it once. */
export async function startFilledEdge(tools: Tools, keys: number): Promise<FilledEdge> {
  const edge = await BenchEdge.start(tools, { isPinned: true });
  try {
    // Connections and buffers of the load itself shall not count as growth.
    await runLoad({
      port: edge.port,
      kind: "path",
      keys: 1000,
      seconds: 2,
      connections: FILL_CONNECTIONS,
    });
    const before = await readFootprint(edge);
    const startedMs = performance.now();
    await requestEachKey(
      { port: edge.port, keys, connections: FILL_CONNECTIONS },
      FILL_SECONDS_MAX,
    );
    const seconds = (performance.now() - startedMs) / 1000;
    const after = await readFootprint(edge);
    const guardedKeys = Math.min(keys, BESIDE_KEYS_MAX);
    await requestEachKey(
      { port: edge.port, keys: guardedKeys, connections: FILL_CONNECTIONS, host: GUARDED_HOST },
      FILL_SECONDS_MAX,
    );
    const inSmallPages = await edge.startInSmallPages();
    await requestEachKey(
      { port: inSmallPages.port, keys: guardedKeys, connections: FILL_CONNECTIONS },
      FILL_SECONDS_MAX,
    );
    return { edge, keys, guardedKeys, inSmallPages, before, after, seconds };
  } catch (error) {
    await edge.stop();
    throw error;
  }
}

/** The same load on the edge in small pages. */
export function onSmallPages(own: Variant, { inSmallPages, guardedKeys }: FilledEdge): Variant {
  const { port, pid } = inSmallPages;
  const name = `Belay with --huge-pages off, ${guardedKeys} keys`;
  return { ...own, name, port, pid, keys: guardedKeys };
}

async function readFootprint(edge: BenchEdge): Promise<Footprint> {
  return {
    entries: await edge.metric("map_entries"),
    mapBytes: await edge.metric("map_bytes"),
    residentBytes: residentBytes(edge.envoyPid),
  };
}
