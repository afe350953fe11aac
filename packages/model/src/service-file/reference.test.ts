import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checkServiceFiles } from "./link.ts";
import { parseServiceFile } from "./parse.ts";
import { formatProblem } from "./problem.ts";
import { membersAt } from "./schema-issue.ts";
import { serviceFileSchema } from "./schema.ts";

const page = readFileSync(
  new URL("../../../../docs/reference/service-file.md", import.meta.url),
  "utf8",
);
const blocks = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text]) => text ?? "");

test("every example of the reference is a good file", () => {
  assert.ok(blocks.length >= 5);
  for (const text of blocks) {
    const result = parseServiceFile(text, "example.yaml");
    assert.ok(result.ok, result.ok ? "" : result.problems.map(formatProblem).join("\n"));
  }
  const files = blocks.slice(1).map((text, index) => ({ file: `${index}.yaml`, text }));
  assert.deepEqual(checkServiceFiles(files).problems, []);
});

test("the defaults in the full example are those of the smallest file", () => {
  const [small, full] = blocks.map((text) => parseServiceFile(text, "x.yaml"));
  assert.ok(small?.ok && full?.ok);
  for (const member of [
    "ownership",
    "replayBytes",
    "envelopeBytes",
    "closeCode",
    "protocol",
  ] as const) {
    assert.deepEqual(full.service[member], small.service[member], member);
  }
});

test("the reference names every member that the schema knows", () => {
  const holders = [
    [],
    ["servers"],
    ["key", 0],
    ["key", 0, "envelope"],
    ["ownership"],
    ["routes", 0],
    ["routes", 0, "match"],
    ["routes", 0, "respond"],
    ["body"],
    ["websocket"],
  ];
  for (const path of holders) {
    const members = membersAt(serviceFileSchema, path);
    assert.notEqual(members.length, 0, path.join("."));
    for (const member of members) {
      assert.match(page, new RegExp(`[\`.]${member}[\`.:]`), `${path.join(".")}.${member}`);
    }
  }
});
