import assert from "node:assert/strict";
import { test } from "node:test";
import { parseServiceFile } from "@belay/model";
import { Placement } from "@belay/protocol";
import { toServiceSpec } from "./service-spec.ts";

function specOf(text: string) {
  const result = parseServiceFile(text, "x.yaml");
  assert.ok(result.ok);
  return toServiceSpec(result.service);
}

test("every time of the file reaches the coordinator in milliseconds", () => {
  const spec = specOf(`service: world
key: { header: x }
ownership: { guard: sdk, placement: pack, idle: 2m, lease: 20s, believe: 9s, drain: 3s, park: 4s, moves-per-second: 7 }
`);
  assert.deepEqual(spec, {
    name: "world",
    leaseMs: 20_000,
    feedLeaseMs: 9000,
    idleMs: 120_000,
    drainMs: 3000,
    parkMs: 4000,
    guarded: true,
    minted: false,
    placement: Placement.PACK,
    movesPerSecond: 7,
  });
});

test("A7: one minted route makes the service a minted one", () => {
  assert.equal(specOf("service: a\nkey: { minted: { header: x } }\n").minted, true);
  const text =
    "service: a\nkey: none\nroutes:\n  - match: { prefix: /mcp }\n    key: { minted: { header: x } }\n";
  assert.equal(specOf(text).minted, true);
});
