import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import test from "node:test";
import { Child, freePorts, runTypeScript, until } from "@belay/testkit";
import { CoordinatorUnderTest } from "../coordinator/coordinator-under-test.ts";
import { EdgeUnderTest } from "./edge-under-test.ts";

const sdk = resolve(import.meta.dirname, "../../packages/server-sdk");

test("the code of the SDK's README runs as it stands", async (t) => {
  const readme = readFileSync(resolve(sdk, "README.md"), "utf8");
  const [, code = ""] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  assert.match(code, /9001/);
  const coordinator = await CoordinatorUnderTest.start({ name: "world" });
  t.after(async () => coordinator.stop());
  const [port = 0] = await freePorts(1);
  const program = code.replaceAll("9001", String(port));
  const evaluate = ["--input-type=module-typescript", "--eval", program];
  const server = new Child("readme", [...runTypeScript, ...evaluate], {
    cwd: sdk,
    env: { BELAY_COORDINATOR: coordinator.address },
  });
  coordinator.onClose(async () => server.kill());
  const edge = new EdgeUnderTest(coordinator);
  await until("it is registered", () => edge.addresses.size > 0);
  assert.equal((await edge.send("alice")).body, "alice was here 1 times\n");
  assert.equal((await edge.send("alice")).body, "alice was here 2 times\n");
  server.signal("SIGTERM");
  assert.equal(await server.exited(), 0);
});
