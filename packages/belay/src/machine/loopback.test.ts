import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { dialHost, isLoopback, readToken } from "./loopback.ts";

test("loopback is 127/8, ::1 and localhost", () => {
  for (const host of ["127.0.0.1", "127.9.9.9", "::1", "localhost"]) assert.ok(isLoopback(host));
  for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.example", "", "1270.0.0.1"]) {
    assert.ok(!isLoopback(host), host);
  }
});

test("beyond loopback a token is needed, of 16 characters at least", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "belay-token-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "token");
  writeFileSync(file, "0123456789abcdef\n");
  assert.equal(readToken("127.0.0.1", undefined), undefined);
  assert.equal(readToken("10.0.0.1", file), "0123456789abcdef");
  assert.throws(() => readToken("10.0.0.1", undefined), /beyond loopback/);
  assert.throws(() => readToken("127.0.0.1", join(folder, "none")), /cannot read the token file/);
  writeFileSync(file, "short");
  assert.throws(() => readToken("127.0.0.1", file), /has 5 characters, 16 are needed/);
});

test("what listens everywhere is dialled on loopback", () => {
  const cases = [
    ["0.0.0.0", "127.0.0.1"],
    ["::", "::1"],
    ["10.0.0.5", "10.0.0.5"],
  ] as const;
  for (const [bind, dialled] of cases) assert.equal(dialHost(bind), dialled);
});
