import type { EnvelopeNumbers, EnvelopePlace, KeyPlace, MintedPlace, Route } from "@belay/model";
import type { ServiceConfig } from "./input.ts";

// The JSON that the module parses: docs/reference/module-config.md.

/** Configuration of the bootstrap extension `belay`. */
export interface BootstrapModuleConfig {
  /** `IP:port`. */
  readonly coordinator: string;
  readonly name: string;
  readonly pool: string;
  readonly max_wait_ms: number;
  readonly token_file?: string;
  readonly huge_pages?: boolean;
}

/** Configuration of the downstream filter `belay.edge`. */
export interface EdgeModuleConfig {
  readonly access_log: boolean;
  readonly key_in_logs: "hash" | "plain";
}

/** Configuration of the LB policy `belay.lb` and of the upstream filter `belay.attempt`. */
export interface UpstreamModuleConfig {
  readonly service: string;
  readonly guarded: boolean;
}

export type KeyPlaceConfig =
  | Exclude<KeyPlace, EnvelopePlace>
  | {
      readonly from: "envelope";
      readonly field: number;
      readonly marker: string;
      readonly use: string | readonly string[];
      readonly numbers?: EnvelopeNumbers;
    };

/** Per-route configuration of `belay.edge`. */
export interface RouteModuleConfig {
  readonly service: string;
  readonly guarded: boolean;
  readonly keys: readonly KeyPlaceConfig[];
  readonly minted?: MintedPlace;
  readonly no_key: "refuse" | "balance";
  readonly park_ms: number;
  readonly replay_bytes: number;
  readonly unknown_key_status: number;
  readonly envelope_bytes: number;
  readonly close_code: number;
}

const isUsual = ({ marker, version, app, server, player, envelope }: EnvelopeNumbers): boolean =>
  [marker, version, app, server, player, envelope].every((number, index) => number === index + 1);

const toPlace = (place: KeyPlace): KeyPlaceConfig => {
  if (place.from !== "envelope") return place;
  const { from, field, marker, use, numbers } = place;
  const [first = "", ...more] = use;
  const ids = more.length > 0 ? use : first;
  return { from, field, marker, use: ids, ...(isUsual(numbers) ? {} : { numbers }) };
};

/** What `belay.lb` and `belay.attempt` of a service's upstream cluster are told. */
export const toUpstreamModuleConfig = (service: ServiceConfig): UpstreamModuleConfig => ({
  service: service.name,
  guarded: service.ownership.guard !== "none",
});

/** What `belay.edge` is told on a route. `parkMs` is the longest that a request of it is held. */
export const toRouteModuleConfig = (
  service: ServiceConfig,
  route: Route,
  parkMs: number,
): RouteModuleConfig => ({
  ...toUpstreamModuleConfig(service),
  keys: route.key.places.map(toPlace),
  ...(route.key.minted === undefined ? {} : { minted: route.key.minted }),
  no_key: route.key.noKey,
  park_ms: parkMs,
  replay_bytes: service.replayBytes,
  unknown_key_status: service.ownership.unknownKeyStatus,
  envelope_bytes: service.envelopeBytes,
  close_code: service.closeCode,
});
