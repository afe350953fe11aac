import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { type Any, anyPack, StringValueSchema } from "@bufbuild/protobuf/wkt";

/** Builds a message and packs it as Envoy's `typed_config` wants it. */
export const packAny = <Desc extends DescMessage>(
  schema: Desc,
  init: MessageInitShape<Desc>,
): Any => anyPack(schema, create(schema, init));

/** Packs text as a `google.protobuf.StringValue`: a dynamic module receives its bytes as they are. */
export const packString = (value: string): Any => packAny(StringValueSchema, { value });
