import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

// The module refuses members that it does not know: whatever a golden says must occur in one of the
// examples that the module accepts (proto/testdata/module-config.json is tested on its side too).

type Json = Record<string, unknown>;
type Examples = Record<string, { readonly valid: readonly Json[] }>;

const root = new URL("../../../..", import.meta.url).pathname;
const examples = JSON.parse(
  readFileSync(join(root, "proto/testdata/module-config.json"), "utf8"),
) as Examples;

/** `keys[envelope].marker`, for every member; array items by their `from`. */
const membersOf = (value: unknown, path = ""): string[] => {
  if (Array.isArray(value)) return value.flatMap((item) => membersOf(item, path));
  if (typeof value !== "object" || value === null) return [path];
  const from = "from" in value ? `[${String(value.from)}]` : "";
  return Object.entries(value).flatMap(([name, inner]) =>
    membersOf(inner, `${path}${from}.${name}`),
  );
};

const known = (kind: string): Set<string> =>
  new Set(examples[kind]?.valid.flatMap((example) => membersOf(example)));

const testdata = new URL("../../testdata", import.meta.url).pathname;

const configsOf = (text: string, name: string): Json[] => {
  const found: Json[] = [];
  JSON.parse(text, (_, value: unknown) => {
    if (typeof value !== "object" || value === null) return value;
    for (const [nameMember, configMember] of [
      ["filter_name", "filter_config"],
      ["lb_policy_name", "lb_policy_config"],
      ["extension_name", "extension_config"],
    ] as const) {
      const { [nameMember]: of, [configMember]: config } = value as Record<
        string,
        { value: string }
      >;
      if ((of as unknown) === name && config) found.push(JSON.parse(config.value) as Json);
    }
    return value;
  });
  return found;
};

const goldens = readdirSync(testdata, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".json"))
  .map((file) => readFileSync(join(testdata, file), "utf8"));

const kinds: readonly (readonly [string, string, (config: Json) => boolean])[] = [
  ["belay", "bootstrap", () => true],
  ["belay.lb", "lb", () => true],
  ["belay.attempt", "attempt", () => true],
  ["belay.edge", "edge", (config) => "access_log" in config],
  ["belay.edge", "route", (config) => "service" in config],
];

for (const [name, kind, isOfKind] of kinds) {
  test(`what the translation tells ${name} (${kind}) is what the module reads`, () => {
    const configs = goldens.flatMap((golden) => configsOf(golden, name)).filter(isOfKind);
    assert.ok(configs.length > 0);
    const members = known(kind);
    const strange = configs.flatMap((config) => membersOf(config)).filter((m) => !members.has(m));
    assert.deepEqual([...new Set(strange)], []);
  });
}
