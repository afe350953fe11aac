import assert from "node:assert/strict";
import test from "node:test";
import { parseIdentity } from "./identity.ts";

test("reads what the edge puts on a request", () => {
  assert.deepEqual(
    parseIdentity({
      "x-belay-key": "a%2Fb%20c",
      "x-belay-epoch": "18446744073709551615",
      "x-belay-incarnation": "7",
    }),
    { key: "a/b c", epoch: 2n ** 64n - 1n, incarnation: 7n },
  );
});

test("a request without a key is for the incarnation alone", () => {
  assert.deepEqual(parseIdentity({ "x-belay-incarnation": "7" }), {
    key: undefined,
    epoch: 0n,
    incarnation: 7n,
  });
});

test("nothing is made of broken or absent headers", () => {
  const broken = [
    {},
    { "x-belay-key": "a", "x-belay-epoch": "1" },
    { "x-belay-incarnation": "" },
    { "x-belay-incarnation": "-1" },
    { "x-belay-incarnation": "18446744073709551616" },
    { "x-belay-incarnation": "7", "x-belay-epoch": "0x1" },
    { "x-belay-incarnation": "7", "x-belay-epoch": "1, 2" },
    { "x-belay-incarnation": "7", "x-belay-key": "%zz" },
    { "x-belay-incarnation": "7", "x-belay-key": "%00" },
    { "x-belay-incarnation": "7", "x-belay-key": "" },
  ];
  for (const headers of broken) assert.equal(parseIdentity(headers), undefined);
});
