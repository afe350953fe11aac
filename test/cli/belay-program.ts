import { resolve } from "node:path";
import { Child, type ChildOptions } from "@belay/testkit";

export const root = resolve(import.meta.dirname, "../..");
const launcher = resolve(root, "packages/belay/bin/belay.mjs");

/** A `belay` that has ended. */
export interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Starts `belay ARGS` as people do: by its launcher. */
export function startBelay(args: readonly string[], options: ChildOptions = {}): Child {
  return new Child(`belay ${args.join(" ")}`, [launcher, ...args], {
    ...options,
    env: { BELAY_API: undefined, NO_COLOR: undefined, ...options.env },
  });
}

/** Runs `belay ARGS` to its end. */
export async function belay(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<Ended> {
  const child = startBelay(args, { env });
  return { code: await child.exited(), output: child.output };
}
