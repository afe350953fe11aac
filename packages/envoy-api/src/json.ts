import {
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  type MessageShape,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { envoyRegistry } from "./registry.ts";
import { typeName } from "./type-url.ts";

const descriptor = (type: string): DescMessage => {
  const found = envoyRegistry().getMessage(typeName(type));
  if (found === undefined) throw new RangeError(`Envoy's API has no message ${typeName(type)}`);
  return found;
};

/** A message in Envoy's own JSON spelling (snake_case, `@type` in every Any). */
export const toEnvoyJson = <Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): JsonValue => toJson(schema, message, { registry: envoyRegistry(), useProtoFieldName: true });

/**
 * Envoy JSON (snake_case or camelCase) of the named type to a message. Throws at the first unknown
 * field, wrong value or unknown `@type`.
 */
export const fromEnvoyJson = (type: string, json: JsonValue): Message =>
  fromJson(descriptor(type), json, { registry: envoyRegistry() });

/** Wire bytes of the named type to Envoy JSON. Throws when the type is unknown or the bytes broken. */
export const decodeEnvoy = (type: string, bytes: Uint8Array): JsonValue => {
  const schema = descriptor(type);
  return toEnvoyJson(schema, fromBinary(schema, bytes));
};

/** Envoy JSON of the named type to wire bytes. Throws like `fromEnvoyJson`. */
export const encodeEnvoy = (type: string, json: JsonValue): Uint8Array =>
  toBinary(descriptor(type), fromEnvoyJson(type, json));
