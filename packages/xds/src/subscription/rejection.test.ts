import assert from "node:assert/strict";
import { test } from "node:test";
import { blamedSources, rejectedNames } from "./rejection.ts";

// The messages are Envoy 1.40's own.

test("clusters and listeners are named before the reason", () => {
  const message =
    "Error adding/updating cluster(s) world: Proto constraint validation failed " +
    "(ClusterValidationError.ConnectTimeout: value must be greater than 0s), " +
    "shop: Circuit breaker: malformed";
  assert.deepEqual(rejectedNames(message, ["world", "shop", "chat", "Circuit"]), ["world", "shop"]);
  const listener =
    "Error adding/updating listener(s) in: Error: non-terminal filter named cors is the last filter";
  assert.deepEqual(rejectedNames(listener, ["in", "named", "cors"]), ["in"]);
});

test("other messages name nothing for sure", () => {
  const message = "malformed IP address: world: Consider setting resolver_name";
  assert.deepEqual(rejectedNames(message, ["world"]), []);
});

test("sources are found by whole names, the longest first", () => {
  const sources = ["a", "a.test", "a.test.org", "shop prefix /rpc", "test"].map((name) => ({
    name,
    label: `${name}!`,
  }));
  const blame = (message: string) => blamedSources(message, sources).map(({ label }) => label);
  assert.deepEqual(blame("Duplicate entry of domain a.test found in route edge"), ["a.test!"]);
  assert.deepEqual(blame("virtual host a has a.test."), ["a.test!", "a!"]);
  assert.deepEqual(blame("route shop prefix /rpc: bad"), ["shop prefix /rpc!"]);
  assert.deepEqual(blame("something else"), []);
  assert.deepEqual(blamedSources("something else", sources.slice(0, 1)).length, 1);
});
