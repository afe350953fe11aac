import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { until } from "@belay/testkit";
import { EdgeUnderTest } from "./edge-under-test.ts";
import { FakeServer } from "./fake-server.ts";

const LOAD_MS = 6_000;
const KEYS = 24;
const CLIENTS = 24;
const servers = {
  guarded: [new FakeServer("a"), new FakeServer("b")],
  plain: [new FakeServer("c"), new FakeServer("d")],
} as const;
const config = { keys: [{ from: "path", template: "/s/{key}" }], park_ms: 8000 };
let edge: EdgeUnderTest;
before(async () => {
  edge = await EdgeUnderTest.start({
    services: (["guarded", "plain"] as const).map((name) => ({
      name,
      guarded: name === "guarded",
      parkMs: 8000,
      drainMs: 300,
      servers: servers[name],
      routes: [{ prefix: "/", host: name, config }],
    })),
  });
});
after(async () => edge.stop());

test("moves, refusals, sockets and aborts at once: every answer is good or has its reason, nothing leaks", async () => {
  for (const service of ["guarded", "plain"] as const) {
    for (let at = 0; at < KEYS; at++)
      edge.coordinator.own(service, `k${at}`, edge.server(servers[service][at % 2]?.name ?? ""));
  }
  const end = performance.now() + LOAD_MS;
  const outcomes = new Map<string, number>();
  const count = (outcome: string): void =>
    void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  const movers = (["guarded", "plain"] as const).map(async (service) => {
    for (let turn = 0; performance.now() < end; turn++)
      await move(service, `k${turn % KEYS}`, turn);
  });
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let turn = client; performance.now() < end; turn++) await act(turn, count);
  });
  await Promise.all([...movers, ...clients]);
  assert.ok((outcomes.get("200") ?? 0) > 100, JSON.stringify([...outcomes]));
  const allowed = /^(200|socket|aborted|503 (moving|refused|outcome-unknown)|cut)$/;
  assert.deepEqual(
    [...outcomes.keys()].filter((outcome) => !allowed.test(outcome)),
    [],
  );
  await until("nothing is active", async () => {
    const active = await Promise.all(
      ['"edge"', '"belay_room"'].map(async (name) =>
        edge.metric("envoy_http_downstream_rq_active", name),
      ),
    );
    const held = [await edge.metric("belay_parked"), await edge.metric("belay_open_streams")];
    return [...active, ...held].every((value) => value === 0);
  });
  assert.equal(await edge.metric("belay_panics"), 0);
});

/** Moves a key to the other server; now and then the old owner gives it up before the edge knows. */
async function move(service: "guarded" | "plain", key: string, turn: number): Promise<void> {
  const [first, second] = servers[service];
  const held = edge.coordinator.ownerOf(service, key);
  const [from, to] = held?.incarnation === first.incarnation ? [first, second] : [second, first];
  if (service === "guarded") from.refuses.set(key, edge.coordinator.revision + 1n);
  edge.coordinator.startMove(service, key);
  const { revision } = edge.coordinator;
  // A guarded old owner needs no proxy (M4), so every other move ends before the edge knows of it.
  const applied = until("the move is applied", () => edge.coordinator.dropped >= revision);
  if (service === "plain" || turn % 2 === 0) await applied;
  to.refuses.delete(key);
  edge.coordinator.finishMove(service, key, edge.server(to.name));
  await applied;
}

async function act(turn: number, count: (outcome: string) => void): Promise<void> {
  const service = turn % 2 === 0 ? "guarded" : "plain";
  const path = `/s/k${(turn * 7) % KEYS}/x`;
  const headers = { host: service };
  switch (turn % 5) {
    case 0: {
      const socket = connect(edge.port, "127.0.0.1");
      socket.on("error", () => {});
      socket.write(`POST ${path} HTTP/1.1\r\nhost: ${service}\r\ncontent-length: 1000\r\n\r\nabc`);
      await new Promise<void>((resolve) => setTimeout(resolve, turn % 40));
      socket.destroy();
      return count("aborted");
    }
    case 1: {
      const socket = await edge.socket(path, headers);
      if (socket.refused === undefined) socket.socket.send("hi");
      socket.socket.terminate();
      return count("socket");
    }
    default: {
      const body = turn % 5 === 2 ? { body: Buffer.alloc(20_000, turn) } : {};
      const answer = await edge.ask(path, { headers, ...body }).catch(() => undefined);
      if (answer === undefined) return count("cut");
      const reason = answer.headers["x-belay-reason"];
      return count(`${answer.status}${reason === undefined ? "" : ` ${String(reason)}`}`);
    }
  }
}
