import type { ProxyStatus } from "@belay/xds";

/** A resource that a proxy refuses at this moment, tied to the lines that it comes from. */
export interface ProxyRejection {
  readonly proxy: string;
  /** Short name of the type: `Cluster`. */
  readonly type: string;
  readonly resource: string;
  /** Envoy's own words. */
  readonly message: string;
  /** Best guess first; empty if no file is to blame. */
  readonly sources: readonly { readonly file: string; readonly line: number }[];
  /** When it was first seen, in milliseconds since 1970. */
  readonly atMs: number;
}

const rejectionsMax = 10_000;

/** `Cluster` of `type.googleapis.com/envoy.config.cluster.v3.Cluster`. */
export const shortType = (typeUrl: string): string => typeUrl.slice(typeUrl.lastIndexOf(".") + 1);

/** Remembers since when each proxy refuses what (xDS rule 3). */
export class ProxyRejections {
  #since = new Map<string, number>();

  /** What the connected proxies refuse now. */
  of(proxies: readonly ProxyStatus[], nowMs: number): ProxyRejection[] {
    const since = new Map<string, number>();
    const rejections: ProxyRejection[] = [];
    for (const proxy of proxies) {
      for (const type of proxy.types) {
        for (const { typeUrl, name, version, message, sources } of type.rejections) {
          const key = JSON.stringify([proxy.id, typeUrl, name, version]);
          const atMs = this.#since.get(key) ?? nowMs;
          if (since.size >= rejectionsMax) continue;
          since.set(key, atMs);
          rejections.push({
            proxy: proxy.id,
            type: shortType(typeUrl),
            resource: name,
            message,
            sources: sources.map(({ label }) => parseLabel(label)),
            atMs,
          });
        }
      }
    }
    this.#since = since;
    return rejections;
  }
}

/** `services/world.yaml:12`, taken apart. */
function parseLabel(label: string): { file: string; line: number } {
  const colon = label.lastIndexOf(":");
  return { file: label.slice(0, colon), line: Number(label.slice(colon + 1)) || 1 };
}
