import type { JsonValue } from "@bufbuild/protobuf";
import { encodeResource, type Resource } from "../resources/resource.ts";
import type { EdgeOptions } from "../translate/input.ts";
import { toListener } from "../translate/listener.ts";
import type { PerProxy } from "./pool.ts";

/** Different addresses; a pool normally has one. */
const listenersMax = 4096;

const isObject = (value: JsonValue | undefined): value is Record<string, JsonValue> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Gives each proxy the edge listener on the address that its bootstrap names (`metadata.edge`); a
 * proxy without one gets none. Make it once per pool and set of options: it keeps what it encodes.
 */
export const edgeListeners = (options: EdgeOptions): PerProxy => {
  const known = new Map<string, Resource>();
  return ({ metadata }) => {
    const edge = metadata["edge"];
    if (!isObject(edge)) return [];
    const { address, port } = edge;
    if (typeof address !== "string" || typeof port !== "number") return [];
    const key = `${address} ${port}`;
    const resource = known.get(key) ?? encodeResource(toListener({ address, port }, options));
    if (known.size >= listenersMax) known.clear();
    known.set(key, resource);
    return [resource];
  };
};
