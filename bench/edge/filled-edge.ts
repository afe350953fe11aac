import { residentBytes } from "../machine/process-facts.ts";
import type { Tools } from "../machine/tools.ts";
import { runLoad } from "../load/wrk.ts";
import { BenchEdge } from "./bench-edge.ts";

const CONNECTIONS = 512;
const FILL_SECONDS_MAX = 400;

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
      connections: CONNECTIONS,
    });
    const before = await readFootprint(edge);
    const startedMs = performance.now();
    await runLoad({
      port: edge.port,
      kind: "fill",
      keys,
      seconds: FILL_SECONDS_MAX,
      connections: CONNECTIONS,
    });
    const seconds = (performance.now() - startedMs) / 1000;
    return { edge, keys, before, after: await readFootprint(edge), seconds };
  } catch (error) {
    await edge.stop();
    throw error;
  }
}

async function readFootprint(edge: BenchEdge): Promise<Footprint> {
  return {
    entries: await edge.metric("map_entries"),
    mapBytes: await edge.metric("map_bytes"),
    residentBytes: residentBytes(edge.envoyPid),
  };
}
