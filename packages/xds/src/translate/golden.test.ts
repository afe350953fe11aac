import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as fc from "fast-check";
import { decodeEnvoy, typeName } from "@belay/envoy-api";
import { checkServiceFiles, formatProblem, type Service } from "@belay/model";
import type { Draft } from "../resources/resource.ts";
import { createSnapshot } from "../resources/snapshot.ts";
import { type BootstrapOptions, toBootstrap } from "./bootstrap.ts";
import { translateEdge } from "./edge.ts";
import type { EdgeOptions } from "./input.ts";
import { toListener } from "./listener.ts";

// Service files in, Envoy resources out: one folder a feature under testdata. UPDATE_GOLDENS=1 writes
// the answers anew (then `npm run format`); read the difference before you keep it. test/xds shows
// them to a real Envoy.

const testdata = new URL("../../testdata", import.meta.url).pathname;
const cases = readdirSync(testdata).filter((name) => name !== "bootstrap");
const listenAt = { address: "127.0.0.1", port: 8080 };

const servicesOf = (folder: string): readonly Service[] => {
  const files = readdirSync(join(testdata, folder)).filter((file) => file.endsWith(".yaml"));
  const { services, problems } = checkServiceFiles(
    files.map((file) => ({ file, text: readFileSync(join(testdata, folder, file), "utf8") })),
  );
  assert.deepEqual(problems.map(formatProblem), []);
  return services;
};

const optionsOf = (folder: string): EdgeOptions => {
  const path = join(testdata, folder, "options.json");
  if (!existsSync(path)) return { module: { name: "belay" }, accessLog: "off" };
  return JSON.parse(readFileSync(path, "utf8")) as EdgeOptions;
};

const draftsOf = (folder: string): Draft[] => {
  const options = optionsOf(folder);
  const drafts = translateEdge(servicesOf(folder), options);
  // Services never reach the listener (rule 6), so it is shown only where its options differ.
  const isOwn = existsSync(join(testdata, folder, "options.json"));
  return isOwn ? [...drafts, toListener(listenAt, options)] : drafts;
};

/** Compares content, so that goldens may be formatted as all other files are. */
const assertGolden = (path: string, made: unknown): void => {
  const text = JSON.stringify(made, null, 2);
  if (process.env["UPDATE_GOLDENS"] === "1") writeFileSync(path, `${text}\n`);
  const kept: unknown = JSON.parse(readFileSync(path, "utf8"));
  assert.deepEqual(JSON.parse(text), kept, `${path} differs; UPDATE_GOLDENS=1 writes it anew`);
};

for (const folder of cases) {
  test(`translation of ${folder}`, () => {
    const resources = draftsOf(folder).map(({ typeUrl, value, sources }) => ({
      type: typeName(typeUrl),
      sources: sources.map(({ name, label }) => `${name} at ${label}`),
      resource: decodeEnvoy(typeUrl, value),
    }));
    assertGolden(join(testdata, folder, "resources.json"), resources);
  });
}

test("translation of a bootstrap", () => {
  const text = readFileSync(join(testdata, "bootstrap/options.json"), "utf8");
  const options = JSON.parse(text) as BootstrapOptions;
  assertGolden(join(testdata, "bootstrap/envoy.json"), toBootstrap(options));
  const admin = { address: "0.0.0.0", port: 9901 };
  assert.throws(() => toBootstrap({ ...options, admin }), /loopback/);
});

test("rule 5: the order of services changes nothing", () => {
  const services = cases.flatMap((folder) => servicesOf(folder));
  const unique = [...new Map(services.map((service) => [service.name, service])).values()];
  const options = optionsOf("keys");
  const expected = createSnapshot(translateEdge(unique, options));
  const shuffled = fc.shuffledSubarray(unique, { minLength: unique.length });
  fc.assert(
    fc.property(shuffled, (list) =>
      assert.deepEqual(createSnapshot(translateEdge(list, options)), expected),
    ),
    { numRuns: 20 },
  );
});
