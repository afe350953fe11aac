import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { BelayUnderTest, type Child, node, until } from "@belay/testkit";
import { WebSocket } from "ws";
import { WebsocketProvider } from "y-websocket";
import * as Y from "yjs";

// examples/documents: unmodified @y/websocket-server behind `belay run`; clients converge whatever happens.
const root = resolve(import.meta.dirname, "../..");
const server = resolve(root, "node_modules/@y/websocket-server/src/server.js");
const documents = Array.from({ length: 6 }, (_, index) => `document-${index}`);
const clientsPerDocument = 3;

let belay: BelayUnderTest;
const instances = new Map<string, Child>();
const clients: { name: string; doc: Y.Doc; provider: WebsocketProvider }[] = [];

async function addInstance(id: string): Promise<void> {
  instances.set(
    id,
    belay.belay(id, [
      "run",
      "--service",
      "documents",
      "--id",
      id,
      "--port",
      "auto",
      "--",
      node,
      server,
    ]),
  );
  await until(`${id} is registered`, async () => (await servers()).includes(id), 30_000);
}

async function servers(): Promise<string[]> {
  const text = await belay.ask(["get", "servers", "-o", "json"]);
  const { servers: list } = JSON.parse(text) as { servers: { id: string }[] };
  return list.map(({ id }) => id);
}

/** Every client adds one mark to its document; all clients of a document then see all marks. */
async function writeAndConverge(round: string): Promise<void> {
  for (const [index, { doc }] of clients.entries())
    doc.getArray("marks").push([`${round}/${index}`]);
  await until(
    `all clients converge in round ${round}`,
    () =>
      clients.every(({ name, doc }) => {
        const marks = new Set(doc.getArray("marks").toArray());
        return clients.every(
          (other, index) => other.name !== name || marks.has(`${round}/${index}`),
        );
      }),
    60_000,
  );
}

before(async () => {
  const file = readFileSync(resolve(root, "examples/documents/documents.yaml"), "utf8");
  const yaml = file.replace("hosts: [documents.localhost]\n", ""); // not every resolver knows it
  assert.notEqual(yaml, file);
  belay = await BelayUnderTest.start({ documents: yaml });
  await Promise.all(["a", "b", "c"].map(addInstance));
  for (const name of documents) {
    for (let index = 0; index < clientsPerDocument; index += 1) {
      const doc = new Y.Doc();
      const provider = new WebsocketProvider(`ws://127.0.0.1:${belay.ports.edge}`, name, doc, {
        WebSocketPolyfill: WebSocket as unknown as typeof globalThis.WebSocket,
        disableBc: true,
        maxBackoffTime: 500,
      });
      clients.push({ name, doc, provider });
    }
  }
});

after(async () => {
  for (const { provider, doc } of clients) {
    provider.destroy();
    doc.destroy();
  }
  await belay.stop();
});

test("clients converge over three instances", async () => {
  await writeAndConverge("start");
});

test("clients converge while an instance is added", async () => {
  await addInstance("d");
  await writeAndConverge("added");
});

test("clients converge while an instance is drained, and it ends by itself", async () => {
  const drained = instances.get("a");
  assert.ok(drained);
  drained.signal("SIGTERM");
  await writeAndConverge("drained");
  assert.equal(await drained.exited(), 143);
  assert.ok(!(await servers()).includes("a"));
});

test("clients converge after an instance was killed", async () => {
  const killed = instances.get("b");
  assert.ok(killed);
  await killed.kill();
  await writeAndConverge("killed");
});
