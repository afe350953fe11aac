import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { moduleFile } from "@belay/testkit";
import { needsEnvoy, needsModule, validate } from "./envoy-under-test.ts";

// Every golden translation, given to a real Envoy as static configuration (rule 13).

interface Golden {
  readonly type: string;
  readonly resource: Record<string, unknown>;
}

const testdata = new URL("../../packages/xds/testdata", import.meta.url).pathname;
const read = (...path: string[]): unknown =>
  JSON.parse(readFileSync(join(testdata, ...path), "utf8"));

const listenerOf = (folder: string): Record<string, unknown> => {
  const ofType = (golden: Golden) => golden.type.endsWith(".Listener");
  const own = (read(folder, "resources.json") as Golden[]).find(ofType);
  const usual = (read("keys", "resources.json") as Golden[]).find(ofType);
  const found = own ?? usual;
  if (found === undefined) throw new Error("no golden has a listener");
  return found.resource;
};

/** The same resources without a control plane: routes stand in the listener, a free port is taken. */
const staticConfig = (folder: string): unknown => {
  const text = readFileSync(join(testdata, folder, "resources.json"), "utf8");
  const goldens = JSON.parse(text.replaceAll("/opt/belay/libbelay.so", moduleFile)) as Golden[];
  const routes = goldens.find((golden) => golden.type.endsWith(".RouteConfiguration"))?.resource;
  const listener = JSON.parse(
    JSON.stringify(listenerOf(folder), (key, value: unknown) => {
      if (key === "port_value") return 0;
      if (key === "filename") return moduleFile;
      if (typeof value !== "object" || value === null || !("rds" in value)) return value;
      const { rds: _, ...manager } = value;
      return { ...manager, route_config: routes };
    }),
  ) as unknown;
  const bootstrap = read("bootstrap", "envoy.json") as {
    readonly dynamic_resources: { readonly ads_config: unknown };
    readonly static_resources: { readonly clusters: unknown[] };
  };
  const clusters = goldens
    .filter((golden) => golden.type.endsWith(".Cluster"))
    .map((golden) => golden.resource);
  return {
    node: { id: "golden", cluster: "edge" },
    dynamic_resources: { ads_config: bootstrap.dynamic_resources.ads_config },
    static_resources: {
      listeners: [listener],
      clusters: [...clusters, ...bootstrap.static_resources.clusters],
    },
  };
};

for (const folder of readdirSync(testdata)) {
  if (folder === "bootstrap") continue;
  const skip = folder === "no-module" ? needsEnvoy : needsModule;
  test(`rule 13: a real Envoy accepts the translation of ${folder}`, { skip }, async () => {
    assert.equal(await validate(staticConfig(folder)), "");
  });
}

test("rule 13: a real Envoy accepts the bootstrap", { skip: needsModule }, async () => {
  assert.equal(await validate(read("bootstrap", "envoy.json")), "");
});

test("a real Envoy refuses what is wrong", { skip: needsEnvoy }, async () => {
  const config = JSON.parse(
    JSON.stringify(staticConfig("no-module")).replace(
      '"connect_timeout":"1s"',
      '"connect_timeout":"0s"',
    ),
  ) as unknown;
  assert.match(await validate(config), /ConnectTimeout/);
});
