import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { decodeEnvoy, encodeEnvoy, fromEnvoyJson, toEnvoyJson } from "./json.ts";
import { packString } from "./any.ts";
import { envoyRegistry } from "./registry.ts";
import { typeName, typeUrls } from "./type-url.ts";
import { ClusterSchema } from "./gen/envoy/config/cluster/v3/cluster_pb.ts";
import { UpstreamCodecSchema } from "./gen/envoy/extensions/filters/http/upstream_codec/v3/upstream_codec_pb.ts";

test("the descriptor set knows every resource type", () => {
  for (const url of Object.values(typeUrls))
    assert.ok(envoyRegistry().getMessage(typeName(url)), url);
});

test("JSON goes to bytes and back in Envoy's spelling", () => {
  const json = { name: "world", connect_timeout: "1.500s", type: "EDS" };
  assert.deepEqual(decodeEnvoy(typeUrls.cluster, encodeEnvoy(typeUrls.cluster, json)), json);
});

test("bytes made through the registry read as the generated type", () => {
  const bytes = encodeEnvoy(typeUrls.cluster, { name: "world" });
  assert.equal(fromBinary(ClusterSchema, bytes).name, "world");
});

test("an Any shows its type and content", () => {
  const cluster = create(ClusterSchema, {
    name: "world",
    typedExtensionProtocolOptions: {
      text: packString('{"a":1}'),
      codec: anyPack(UpstreamCodecSchema, create(UpstreamCodecSchema)),
    },
  });
  assert.deepEqual(toEnvoyJson(ClusterSchema, cluster), {
    name: "world",
    typed_extension_protocol_options: {
      text: { "@type": "type.googleapis.com/google.protobuf.StringValue", value: '{"a":1}' },
      codec: {
        "@type":
          "type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec",
      },
    },
  });
});

test("unknown fields and types are refused", () => {
  assert.throws(() => fromEnvoyJson(typeUrls.cluster, { nmae: "world" }), /nmae/);
  assert.throws(() => encodeEnvoy("envoy.Nope", {}), /no message envoy\.Nope/);
});
