import assert from "node:assert/strict";
import test from "node:test";
import { formatSocketAddress, parseSocketAddress } from "./socket-address.ts";

test("an address is an IP and a port, and comes back as it was", () => {
  for (const text of ["127.0.0.1:8801", "[::1]:1", "10.0.0.5:65535"]) {
    assert.equal(formatSocketAddress(parseSocketAddress(text, "--coordinator")), text);
  }
  assert.deepEqual(parseSocketAddress("localhost:80", "--xds"), { host: "127.0.0.1", port: 80 });
});

test("a name, a missing port or a bad one is refused, with the flag named", () => {
  for (const bad of ["", "core.example:8801", "127.0.0.1", "127.0.0.1:0", "1.2.3:4", "::1:80"]) {
    assert.throws(() => parseSocketAddress(bad, "--coordinator"), /--coordinator must be/, bad);
  }
});
