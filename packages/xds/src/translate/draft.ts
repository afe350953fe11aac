import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { typeUrl } from "@belay/envoy-api";
import { ApiVersion } from "@belay/envoy-api/gen/config/core/v3/config_source";
import { type Duration, durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Draft, Source } from "../resources/resource.ts";
import type { ServiceConfig } from "./input.ts";

interface DraftOf<Desc extends DescMessage> {
  readonly name: string;
  readonly message: MessageInitShape<Desc>;
  readonly sources: readonly Source[];
}

/** A resource message, encoded; the same input gives the same bytes (rule 5). */
export const toDraft = <Desc extends DescMessage>(schema: Desc, of: DraftOf<Desc>): Draft => ({
  typeUrl: typeUrl(schema.typeName),
  name: of.name,
  value: toBinary(schema, create(schema, of.message)),
  sources: of.sources,
});

/** Subscribes by the stream that brought the resource. Undefined: Envoy's 15 s for the first answer. */
export const adsSource = (initialFetchTimeout?: Duration) => ({
  resourceApiVersion: ApiVersion.V3,
  configSourceSpecifier: { case: "ads" as const, value: {} },
  ...(initialFetchTimeout === undefined ? {} : { initialFetchTimeout }),
});

/** Whole milliseconds as Envoy writes durations. */
export const duration = (ms: number): Duration => durationFromMs(ms);

/** A member of a service file as a source: `name` is how Envoy may speak of it. */
export const sourceOf = (service: ServiceConfig, name: string, path: string): Source => {
  const { file, positions } = service.source;
  const line = (positions[path] ?? positions[""])?.line ?? 1;
  return { name, label: `${file}:${line}` };
};
