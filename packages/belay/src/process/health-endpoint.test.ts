import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import test from "node:test";
import { startHealthEndpoint } from "./health-endpoint.ts";

test("a port in use leaves it out, with the name of the flag that there is", async (t) => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  t.after(() => taken.close());
  const address = taken.address();
  assert.ok(address !== null && typeof address === "object");
  const lines: string[] = [];
  const quiet = (): void => undefined;
  const warn = (_: unknown, message: string): void => void lines.push(message);
  await startHealthEndpoint({
    host: "127.0.0.1",
    port: undefined,
    fallbackPort: address.port,
    command: "belay proxy",
    logger: { debug: quiet, info: quiet, warn, error: quiet },
    health: async () => ({ ok: true }),
    metrics: async () => "",
  });
  assert.match(lines.join(), /all else works[^]*`belay proxy --metrics-port` chooses another/);
});
