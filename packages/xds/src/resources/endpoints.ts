import { isIP } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { typeUrls } from "@belay/envoy-api";
import { HealthStatus } from "@belay/envoy-api/gen/config/core/v3/health_check";
import { LbEndpointSchema } from "@belay/envoy-api/gen/config/endpoint/v3/endpoint_components";
import { encodeResource, type Resource } from "./resource.ts";
import { field, fieldHead } from "./wire.ts";

/** `10.0.0.1:8080` or `[::1]:8080`, taken apart; undefined when it is neither. */
export const parseAddress = (text: string): { host: string; port: number } | undefined => {
  const [, v6, v4, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):([0-9]{1,5})$/.exec(text) ?? [];
  const host = v6 ?? v4;
  const port = Number(digits);
  if (host === undefined || isIP(host) !== (v6 === undefined ? 4 : 6)) return undefined;
  return port >= 1 && port <= 65_535 ? { host, port } : undefined;
};

const cacheEntriesMax = 100_000;

/**
 * Encodes a service's endpoints by joining the cached bytes of each: byte-equal to the ordinary
 * encoding and some twenty times faster, as a large service changes by one server at a time (rule 9).
 */
export class EndpointEncoder {
  readonly #cache = new Map<string, Buffer>();
  readonly #last: readonly Buffer[];

  /** `last`: an encoded LbEndpoint that closes every list, such as a waiting room. */
  constructor(last?: Uint8Array) {
    this.#last = last === undefined ? [] : [field(2, last)];
  }

  /** Addresses are sorted and counted once; one that is not `IP:port` throws a RangeError. */
  encode(service: string, addresses: Iterable<string>): Resource {
    const endpoints = [...new Set(addresses)].toSorted().map((address) => this.#endpoint(address));
    const locality = Buffer.concat([...endpoints, ...this.#last]);
    const value = Buffer.concat([
      field(1, service),
      ...(locality.length > 0 ? [fieldHead(2, locality.length), locality] : []),
    ]);
    return encodeResource({ typeUrl: typeUrls.endpoint, name: service, value, sources: [] });
  }

  #endpoint(address: string): Buffer {
    const known = this.#cache.get(address);
    if (known !== undefined) return known;
    const parsed = parseAddress(address);
    if (parsed === undefined)
      throw new RangeError(`endpoint ${address}: expected IP:port, for example 10.0.0.1:8080`);
    const portSpecifier = { case: "portValue", value: parsed.port } as const;
    const socketAddress = { address: parsed.host, portSpecifier };
    const endpoint = create(LbEndpointSchema, {
      hostIdentifier: {
        case: "endpoint",
        value: { address: { address: { case: "socketAddress", value: socketAddress } } },
      },
      // Draining is the coordinator's business: Envoy must be able to reach every live server.
      healthStatus: HealthStatus.HEALTHY,
    });
    const bytes = field(2, toBinary(LbEndpointSchema, endpoint));
    if (this.#cache.size >= cacheEntriesMax) this.#cache.clear();
    this.#cache.set(address, bytes);
    return bytes;
  }
}
