import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** The Envoy release whose API this package holds. */
export const envoyVersion = "1.40.0";

const load = (): FileRegistry => {
  const packed = readFileSync(new URL(`../envoy-api-${envoyVersion}.binpb.gz`, import.meta.url));
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, gunzipSync(packed)));
};

let registry: FileRegistry | undefined;

/**
 * Every message, enum and extension of Envoy's v3 API, without generated code. The first call reads
 * and unpacks the descriptor set (about 0.2 s, 25 MB), later ones answer the same registry.
 */
export const envoyRegistry = (): FileRegistry => (registry ??= load());
