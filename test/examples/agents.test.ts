import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { BelayUnderTest, node, until } from "@belay/testkit";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

// examples/agents: unmodified MCP servers that mint Mcp-Session-Id; real SDK clients keep their sessions.
const root = resolve(import.meta.dirname, "../..");
const server = resolve(root, "node_modules/@modelcontextprotocol/server-everything/dist/index.js");
const sessions = 24;

let belay: BelayUnderTest;
const clients: { client: Client; transport: StreamableHTTPClientTransport }[] = [];

async function addInstance(id: string): Promise<void> {
  const run = ["run", "--service", "agents", "--id", id, "--port", "auto", "--"];
  const child = belay.belay(id, [...run, node, server, "streamableHttp"]);
  await until(
    `${id} is registered`,
    async () => (await belay.ask(["get", "servers", "-o", "json"])).includes(`"${id}"`),
    30_000,
  );
  assert.match(child.output, /listens beyond loopback/, "belay run warns of an open listener");
}

async function openSession(): Promise<void> {
  const client = new Client({ name: "belay-test", version: "1.0.0" });
  const transport = new StreamableHTTPClientTransport(
    new URL(`http://127.0.0.1:${belay.ports.edge}/mcp`),
  );
  await client.connect(transport);
  clients.push({ client, transport });
}

async function callAll(round: string): Promise<void> {
  await Promise.all(
    clients.map(async ({ client }, index) => {
      const message = `${round}-${index}`;
      const answer = await client.callTool({ name: "echo", arguments: { message } });
      assert.match(JSON.stringify(answer), new RegExp(message));
    }),
  );
}

before(async () => {
  const file = readFileSync(resolve(root, "examples/agents/agents.yaml"), "utf8");
  const yaml = file.replace("hosts: [agents.localhost]\n", ""); // not every resolver knows it
  assert.notEqual(yaml, file);
  belay = await BelayUnderTest.start({ agents: yaml });
  await Promise.all(["a", "b", "c"].map(addInstance));
});

after(async () => {
  await Promise.allSettled(clients.map(async ({ client }) => client.close()));
  await belay.stop();
});

test("sessions spread over the instances and keep their server", async () => {
  for (let index = 0; index < sessions; index += 1) await openSession();
  assert.equal(new Set(clients.map(({ transport }) => transport.sessionId)).size, sessions);
  for (const round of ["one", "two", "three"]) await callAll(round);
  const shards = await belay.ask(["get", "shards", "agents", "-o", "json"]);
  for (const id of ["a", "b", "c"]) assert.match(shards, new RegExp(`"${id}"`));
});

test("sessions go on while instances are added and drained", async () => {
  await addInstance("d");
  await belay.ask(["move", "agents", clients[0]?.transport.sessionId ?? ""], 5);
  for (const round of ["four", "five"]) await callAll(round);
});

test("an unknown session is 404, as the protocol asks, and is never placed", async () => {
  const response = await fetch(`http://127.0.0.1:${belay.ports.edge}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", "mcp-session-id": "nobody-made-this" },
    body: "{}",
  });
  assert.equal(response.status, 404);
  assert.equal(response.headers.get("x-belay-reason"), "unknown-key");
});
