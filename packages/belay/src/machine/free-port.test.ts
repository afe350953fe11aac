import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import test from "node:test";
import { BelayError } from "@belay/model";
import { findFreePort, requireFreePort } from "./free-port.ts";
import { listListeningSockets } from "./listening-sockets.ts";

const wanted = { what: "the edge", env: "BELAY_EDGE_PORT" };

async function testPortInUse(host: string): Promise<void> {
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  const { port } = address;
  assert.ok(listListeningSockets().some((it) => it.address === host && it.port === port));
  await assert.rejects(requireFreePort({ ...wanted, host, port }), (error) => {
    assert.ok(error instanceof BelayError);
    assert.equal(error.code, "port-in-use");
    assert.match(
      error.message,
      new RegExp(`port ${port} for the edge is in use by .*${process.pid}`),
    );
    assert.match(error.message, /BELAY_EDGE_PORT chooses another port/);
    return true;
  });
  server.close();
}

test("a port in use is named, with who has it and what changes it", async () => {
  await testPortInUse("127.0.0.1");
});

test("the same for IPv6", async () => {
  await testPortInUse("::1");
});

test("a free port is free", async () => {
  const port = await findFreePort("127.0.0.1");
  await requireFreePort({ ...wanted, host: "127.0.0.1", port });
});

test("an address that is not this machine's is refused", async () => {
  const elsewhere = requireFreePort({ ...wanted, host: "192.0.2.1", port: 1 });
  await assert.rejects(elsewhere, /no address 192\.0\.2\.1/);
});
