import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { z } from "zod";
import { parseHostTemplate } from "../key/host-template.ts";
import { parsePathTemplate } from "../key/path-template.ts";
import type { KeyPlace } from "../service-file/service.ts";
import { extractKey } from "./place-finder.ts";

const testdata = new URL("../../../../proto/testdata/", import.meta.url);
const read = (name: string): unknown => JSON.parse(readFileSync(new URL(name, testdata), "utf8"));

const named = (from: "header" | "cookie" | "query") =>
  z.strictObject({ from: z.literal(from), name: z.string() });
const envelopeId = z.enum(["app", "server", "player", "envelope"]);
const place = z.union([
  z.strictObject({ from: z.literal("path"), template: z.string(), strip: z.boolean() }),
  z.strictObject({ from: z.literal("host"), template: z.string() }),
  named("header"),
  named("cookie"),
  named("query"),
  z.strictObject({
    from: z.literal("envelope"),
    field: z.number(),
    marker: z.string(),
    use: envelopeId,
  }),
]);
const vectors = z.array(
  z.strictObject({
    keys: z.array(place),
    path: z.string().default("/"),
    authority: z.string().default("any.example"),
    headers: z.array(z.tuple([z.string(), z.string()])).default([]),
    expect: z.strictObject({
      key: z.string().optional(),
      server: z.string().optional(),
      reason: z.string().optional(),
      none: z.literal(true).optional(),
      needBody: z.literal(true).optional(),
      path: z.string().optional(),
    }),
  }),
);

const numbers = { marker: 1, version: 2, app: 3, server: 4, player: 5, envelope: 6 };
const toPlace = (it: z.infer<typeof place>): KeyPlace =>
  it.from === "envelope" ? { ...it, use: [it.use], numbers } : it;

for (const { keys, expect, ...request } of vectors.parse(read("places.json"))) {
  test(`places.json: ${JSON.stringify({ keys, ...request })}`, () => {
    const found = extractKey({ places: keys.map(toPlace), noKey: "refuse" }, request);
    const got = {
      ...(found.kind === "key" ? { key: found.key } : {}),
      ...(found.kind === "server" ? { server: found.id } : {}),
      ...(found.kind === "refused" ? { reason: found.reason } : {}),
      ...(found.kind === "none" ? { none: true } : {}),
      ...(found.kind === "need-body" ? { needBody: true } : {}),
      ...(expect.path === undefined || found.kind === "refused" ? {} : { path: found.path }),
    };
    assert.deepEqual(got, expect);
  });
}

test("templates of module-config.json are judged as the module judges them", () => {
  const key = z.looseObject({ from: z.unknown(), template: z.unknown() });
  const config = z.looseObject({ keys: z.array(z.unknown()) });
  const file = z
    .object({
      route: z.object({
        valid: z.array(config),
        invalid: z.array(z.object({ config: z.unknown(), member: z.string() })),
      }),
    })
    .parse(read("module-config.json"));
  const isGood = (raw: unknown): boolean => {
    const { from, template } = key.parse(raw);
    return from === "path"
      ? parsePathTemplate(String(template)).ok
      : parseHostTemplate(String(template)).ok;
  };
  const templates = (raw: unknown): unknown[] =>
    config
      .parse(raw)
      .keys.filter((it) => ["path", "host"].includes(String(Reflect.get(Object(it), "from"))));
  const good = file.route.valid.flatMap(templates);
  const bad = file.route.invalid.filter(({ member }) => /^keys\[\d\]\.template$/.test(member));
  assert.ok(good.length > 3 && bad.length > 1);
  for (const it of good) assert.ok(isGood(it), JSON.stringify(it));
  for (const { config: it } of bad) assert.ok(!templates(it).every(isGood), JSON.stringify(it));
});
