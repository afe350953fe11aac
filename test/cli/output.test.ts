import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import { Child } from "@belay/testkit";
import { root } from "./belay-program.ts";

const launcher = join(root, "packages/belay/bin/belay.mjs");

/** A shell line in which $0 is `belay`; its exit code and what it says on standard error. */
async function shell(line: string): Promise<{ code: number; output: string }> {
  const child = new Child(line, ["bash", "-c", line, launcher]);
  return { code: await child.exited(), output: child.output };
}

test("an output that cannot be written is an error, not a success", async () => {
  const verbs = ["--help", "--version", "completion bash", "get --help"];
  const ended = await Promise.all(verbs.map((verb) => shell(`"$0" ${verb} > /dev/full`)));
  for (const { code, output } of ended) {
    assert.equal(code, 7, output);
    assert.match(output, /belay: the output is lost: no space left on device\n/);
  }
});

test("a reader that goes away early ends it quietly, with the code of SIGPIPE", async () => {
  const line = '"$0" completion bash | true; exit "${PIPESTATUS[0]}"';
  assert.deepEqual(await shell(line), { code: 141, output: "" });
});

test("a lost log line changes nothing", async () => {
  const { code } = await shell('"$0" statsu 2> /dev/full');
  assert.equal(code, 2);
  const logger = join(root, "packages/belay/src/log/process-logger.ts");
  const script = `
    const { createProcessLogger } = await import("${logger}");
    createProcessLogger("info", "json").info({}, "lost");
    setImmediate(() => console.log("goes on"));
  `;
  const args = `--conditions=belay-source --input-type=module -e '${script}'`;
  const json = await shell(`"${process.execPath}" ${args} 2> /dev/full`);
  assert.deepEqual(json, { code: 0, output: "goes on\n" });
});
