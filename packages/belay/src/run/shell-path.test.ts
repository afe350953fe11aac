import assert from "node:assert/strict";
import test from "node:test";
import { toShellPath } from "./shell-path.ts";

const npm = { npm_command: "exec" };
const added = "/app/node_modules/.bin:/node_modules/.bin:/npm/run-script/lib/node-gyp-bin";

test("what npm put before the PATH comes after it", () => {
  assert.equal(toShellPath(`${added}:/usr/bin:/bin`, npm), `/usr/bin:/bin:${added}`);
  assert.equal(
    toShellPath(`${added}:/usr/bin`, { npm_lifecycle_event: "dev" }),
    `/usr/bin:${added}`,
  );
});

test("a PATH that npm did not touch stays as it is", () => {
  assert.equal(toShellPath(`${added}:/usr/bin`, {}), `${added}:/usr/bin`);
  assert.equal(toShellPath(`/usr/bin:${added}`, npm), `/usr/bin:${added}`);
  assert.equal(toShellPath(added, npm), added);
  assert.equal(toShellPath("", npm), "");
});
