import { copyFileSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { BelayError } from "@belay/model";

/** The demo of the checkout: a service file and a server that uses the SDK. */
export interface Demo {
  readonly service: string;
  readonly serviceFile: string;
  readonly serverProgram: string;
  readonly serverIds: readonly string[];
}

/** Fails with `usage` outside a checkout: the demo is no part of the package. */
export function findDemo(): Demo {
  const folder = resolve(import.meta.dirname, "../../../../examples/world");
  const serviceFile = join(folder, "services/world.yaml");
  if (!existsSync(serviceFile)) {
    throw new BelayError("usage", `--demo needs a checkout of Belay: there is no ${serviceFile}`);
  }
  return {
    service: "world",
    serviceFile,
    serverProgram: join(folder, "src/main.ts"),
    serverIds: ["world-1", "world-2", "world-3"],
  };
}

/** Puts the demo's service file into an empty services folder; one with files is left as it is. */
export function seedServices(data: string, demo: Demo): void {
  const folder = join(data, "services");
  mkdirSync(folder, { recursive: true });
  if (readdirSync(folder).some((name) => name.endsWith(".yaml"))) return;
  copyFileSync(demo.serviceFile, join(folder, `${demo.service}.yaml`));
}
