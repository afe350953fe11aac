import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { normalizePath } from "./edge-path.ts";

test("a path is read as Envoy leaves it", () => {
  const cases = [
    ["/s/a/../b", "/s/b"],
    ["/s/%2e%2E/b?x=/../y", "/b?x=/../y"],
    ["/s/a/..", "/s/"],
    ["/../..", "/"],
    ["/s//../a", "/s/a"],
    ["//a", "//a"],
    [String.raw`/s\a\..\b?c\d`, String.raw`/s/b?c\d`],
    ["/s/a%2F..%2fb", "/s/a%2F..%2fb"],
    ["/s/a/..;x/b", "/s/b"],
    ["/s/%2e%2e;x/b", "/s/..;x/b"],
    ["/s/%41%7e%c3%A9", "/s/A~%c3%A9"],
    ["/s/{a}|", "/s/%7Ba%7D%7C"],
    ["/s/%zz%", "/s/%zz%"],
    ["/s/%%34%31/%0%30", "/s/%2541/%2500"],
    ["/s/é b", "/s/%C3%A9%20b"],
    ["/s/a%00", undefined],
    ["/s/a/..;%00/b", "/s/b"],
    ["/s/a?b=%00", "/s/a?b=%00"],
  ] as const;
  for (const [sent, read] of cases) assert.equal(normalizePath(sent), read, sent);
});

test("no dot segment is left, and only what a request line carries", () => {
  const piece = fc.constantFrom("/", "..", ".", "%2e", ";", "\\", "%5c", "%", "a", "é", "?", "{");
  const path = fc.array(piece, { maxLength: 20 }).map((it) => `/${it.join("")}`);
  fc.assert(
    fc.property(path, (sent) => {
      const once = normalizePath(sent) ?? "";
      assert.match(once, /^\/[\x21-\x7e]*$/);
      const plain = once.split("?")[0] ?? "";
      assert.ok(!plain.split("/").some((it) => it === "." || it === ".."), once);
    }),
  );
});
