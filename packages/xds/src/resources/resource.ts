import { createHash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { ResourceSchema } from "@belay/envoy-api/gen/service/discovery/v3/discovery";
import { field } from "./wire.ts";

/** Where (a part of) a resource comes from: `label` is shown when Envoy's complaint names `name`. */
export interface Source {
  readonly name: string;
  /** As a person finds it: `services/world.yaml:12`. */
  readonly label: string;
}

/** What a translation makes: a message of a resource type, not yet framed. */
export interface Draft {
  readonly typeUrl: string;
  readonly name: string;
  /** The message's deterministic encoding. */
  readonly value: Uint8Array;
  readonly sources: readonly Source[];
}

/** A draft encoded once for all streams (rule 12). */
export interface Resource {
  readonly typeUrl: string;
  readonly name: string;
  /** Hash of the value: equal content has an equal version, also after a restart (rule 5). */
  readonly version: string;
  /** A whole `resources` field of a DeltaDiscoveryResponse. */
  readonly framed: Buffer;
  readonly sources: readonly Source[];
}

const resourcesField = 2;

const versionOf = (value: Uint8Array): string =>
  createHash("sha256").update(value).digest("base64url").slice(0, 16);

/** Frames a draft for the wire and gives it the version of its bytes. */
export const encodeResource = (draft: Draft): Resource => {
  const { typeUrl, name, value, sources } = draft;
  const version = versionOf(value);
  const resource = create(AnySchema, { typeUrl, value });
  const message = create(ResourceSchema, { name, version, resource });
  const framed = field(resourcesField, toBinary(ResourceSchema, message));
  return { typeUrl, name, version, framed, sources };
};
