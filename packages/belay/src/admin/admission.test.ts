import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { test } from "node:test";
import { BelayError } from "@belay/model";
import { admit, isLoopback } from "./admission.ts";

function verdict(headers: IncomingHttpHeaders, token?: string, open = false): string {
  try {
    admit(headers, { host: "127.0.0.1", token }, open);
    return "admitted";
  } catch (error) {
    return error instanceof BelayError ? error.code : String(error);
  }
}

test("loopback is loopback only", () => {
  for (const host of ["127.0.0.1", "127.1.2.3", "::1", "localhost"]) assert.ok(isLoopback(host));
  for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example", "localhost.example", ""]) {
    assert.ok(!isLoopback(host), host);
  }
});

test("without a token the API has no name but its own", () => {
  for (const host of ["127.0.0.1:8800", "localhost", "LOCALHOST:1", "[::1]:8800"]) {
    assert.equal(verdict({ host }), "admitted", host);
  }
  for (const host of [
    "evil.example",
    "127.0.0.1.evil.example",
    "evil.example:127.0.0.1",
    "",
    "[::1]x",
  ]) {
    assert.equal(verdict({ host }), "foreign-host", host);
  }
  assert.equal(verdict({}), "foreign-host");
});

test("pages of other origins are refused, with a token too", () => {
  const host = "127.0.0.1:8800";
  assert.equal(verdict({ host, origin: "http://127.0.0.1:8800" }), "admitted");
  for (const origin of ["null", "http://evil.example", "http://127.0.0.1:8080", "not an origin"]) {
    assert.equal(verdict({ host, origin }), "foreign-origin", origin);
  }
  assert.equal(verdict({ host, "sec-fetch-site": "same-site" }), "foreign-origin");
  const authorization = "Bearer secret";
  assert.equal(
    verdict({ host, authorization, origin: "http://x.example" }, "secret"),
    "foreign-origin",
  );
});

test("with a token it is the token that counts", () => {
  assert.equal(verdict({ host: "belay.internal" }, "secret"), "unauthorized");
  assert.equal(
    verdict({ host: "belay.internal", authorization: "Bearer guess" }, "secret"),
    "unauthorized",
  );
  assert.equal(
    verdict({ host: "belay.internal", authorization: "Basic secret" }, "secret"),
    "unauthorized",
  );
  assert.equal(
    verdict({ host: "belay.internal", authorization: "Bearer secret" }, "secret"),
    "admitted",
  );
  assert.equal(verdict({ host: "belay.internal" }, "secret", true), "admitted");
});
