import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { typeUrls } from "@belay/envoy-api";
import { ClusterLoadAssignmentSchema } from "@belay/envoy-api/gen/config/endpoint/v3/endpoint";
import { DeltaDiscoveryResponseSchema } from "@belay/envoy-api/gen/service/discovery/v3/discovery";
import { EndpointEncoder, parseAddress } from "./endpoints.ts";
import type { Draft } from "./resource.ts";
import { createSnapshot, diffSnapshots } from "./snapshot.ts";

const draft = (name: string, content: string): Draft => ({
  typeUrl: typeUrls.cluster,
  name,
  value: Buffer.from(content),
  sources: [],
});

test("joined endpoint bytes are what the ordinary encoder makes", () => {
  const addresses = fc.uniqueArray(
    fc.tuple(fc.ipV4(), fc.integer({ min: 1, max: 65_535 })).map(([ip, port]) => `${ip}:${port}`),
  );
  const encoder = new EndpointEncoder();
  fc.assert(
    fc.property(addresses, (list) => {
      const framed = encoder.encode("world", list).framed;
      const [resource] = fromBinary(DeltaDiscoveryResponseSchema, framed).resources;
      const lbEndpoints = list.toSorted().map((text) => {
        const { host = "", port = 0 } = parseAddress(text) ?? {};
        const socketAddress = {
          address: host,
          portSpecifier: { case: "portValue", value: port },
        } as const;
        return {
          healthStatus: 1,
          hostIdentifier: {
            case: "endpoint",
            value: { address: { address: { case: "socketAddress", value: socketAddress } } },
          },
        } as const;
      });
      const endpoints = list.length > 0 ? [{ lbEndpoints }] : [];
      const message = create(ClusterLoadAssignmentSchema, { clusterName: "world", endpoints });
      const plain = toBinary(ClusterLoadAssignmentSchema, message);
      assert.deepEqual(Buffer.from(resource?.resource?.value ?? []), Buffer.from(plain));
    }),
  );
});

test("rule 5: the order of addresses and repetitions do not change a version", () => {
  const encoder = new EndpointEncoder();
  const one = encoder.encode("world", ["10.0.0.2:1", "10.0.0.1:1", "10.0.0.2:1"]);
  const two = new EndpointEncoder().encode("world", ["10.0.0.1:1", "10.0.0.2:1"]);
  assert.equal(one.version, two.version);
});

test("addresses: IP and port, nothing else", () => {
  assert.deepEqual(parseAddress("10.0.0.1:80"), { host: "10.0.0.1", port: 80 });
  assert.deepEqual(parseAddress("[::1]:65535"), { host: "::1", port: 65_535 });
  for (const bad of ["localhost:80", "10.0.0:80", "::1:80", "10.0.0.1:0", "10.0.0.1:65536", ""])
    assert.equal(parseAddress(bad), undefined, bad);
  assert.throws(() => new EndpointEncoder().encode("world", ["localhost:80"]), /localhost:80/);
});

test("a framed resource reads as part of a response", () => {
  const snapshot = createSnapshot([draft("a", "1"), draft("b", "2")]);
  const clusters = [...(snapshot.types.get(typeUrls.cluster)?.values() ?? [])];
  const bytes = Buffer.concat(clusters.map((resource) => resource.framed));
  const response = fromBinary(DeltaDiscoveryResponseSchema, bytes);
  assert.deepEqual(
    response.resources.map((resource) => [resource.name, resource.resource?.typeUrl]),
    [
      ["a", typeUrls.cluster],
      ["b", typeUrls.cluster],
    ],
  );
});

test("rule 5: a snapshot is the same whatever the order of its drafts", () => {
  const drafts = [draft("a", "1"), draft("b", "2"), draft("c", "3")];
  const order = fc.shuffledSubarray(drafts, { minLength: 3 });
  fc.assert(
    fc.property(order, (shuffled) => {
      assert.deepEqual(createSnapshot(shuffled), createSnapshot(drafts));
      assert.deepEqual(diffSnapshots(createSnapshot(drafts), createSnapshot(shuffled)), []);
    }),
  );
});

test("a diff names what was added, changed and removed", () => {
  const before = createSnapshot([draft("a", "1"), draft("b", "2")]);
  const after = createSnapshot([draft("b", "3"), draft("c", "3")]);
  assert.deepEqual(
    diffSnapshots(before, after).map((change) => `${change.kind} ${change.name}`),
    ["removed a", "changed b", "added c"],
  );
});

test("two resources of one type and name are refused", () => {
  assert.throws(() => createSnapshot([draft("a", "1"), draft("a", "2")]), /name a/);
});
