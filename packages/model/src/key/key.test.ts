import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as fc from "fast-check";
import { z } from "zod";
import { decodeKey, encodeKey, isKey, parseKey } from "./key.ts";

const vectors = z
  .object({
    valid: z.array(z.object({ key: z.string(), header: z.string() })),
    invalid: z.array(
      z.object({ hex: z.string().optional(), repeat: z.number().optional(), why: z.string() }),
    ),
    percentDecoding: z.array(
      z.object({ in: z.string(), key: z.string().optional(), error: z.string().optional() }),
    ),
  })
  .parse(
    JSON.parse(
      readFileSync(new URL("../../../../proto/testdata/keys.json", import.meta.url), "utf8"),
    ),
  );

test("valid keys of the vectors are keys and get their header form", () => {
  for (const { key, header } of vectors.valid) {
    assert.equal(parseKey(new TextEncoder().encode(key)), key);
    assert.ok(isKey(key));
    assert.equal(encodeKey(key), header);
    assert.equal(decodeKey(header), key);
  }
});

test("invalid keys of the vectors are refused", () => {
  for (const { hex, repeat, why } of vectors.invalid) {
    const bytes = repeat === undefined ? Buffer.from(hex ?? "", "hex") : Buffer.alloc(repeat, "a");
    assert.equal(parseKey(bytes), undefined, why);
  }
});

test("percent-decoding of the vectors happens once", () => {
  for (const vector of vectors.percentDecoding) {
    assert.equal(decodeKey(vector.in), vector.key, vector.in);
  }
});

test("a key with lone surrogates is none", () => {
  assert.equal(isKey("\ud800"), false);
  assert.equal(isKey("a".repeat(256)), true);
  assert.equal(isKey("a".repeat(257)), false);
});

test("header form and key are the inverse of each other", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }), (text) => {
      fc.pre(isKey(text));
      assert.equal(decodeKey(encodeKey(text)), text);
      assert.match(encodeKey(text), /^[A-Za-z0-9\-._~%]+$/);
    }),
  );
});
