import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { encodeFrame, type FeedBatch, FrameDecoder } from "@belay/protocol";
import { EndpointBook } from "./endpoint-book.ts";

type Entry =
  | { readonly kind: "server"; readonly id: string; readonly incarnation: bigint }
  | { readonly kind: "ended"; readonly id: string; readonly incarnation: bigint }
  | { readonly kind: "service"; readonly guarded: boolean };

const toEntry = (entry: Entry) => {
  if (entry.kind === "service") {
    const value = { name: "world", guarded: entry.guarded };
    return { entry: { case: "service" as const, value } };
  }
  const { id, incarnation } = entry;
  const value = { service: "world", serverId: id, incarnation };
  return entry.kind === "server"
    ? { entry: { case: "server" as const, value: { ...value, address: `10.0.0.1:${id}` } } }
    : { entry: { case: "serverEnded" as const, value } };
};

function batch(
  revisions: readonly [previous: bigint, revision: bigint],
  entries: readonly Entry[],
  more: Partial<Pick<FeedBatch, "snapshot" | "complete">> = {},
): FeedBatch {
  const [previous, revision] = revisions;
  const value = { previous, revision, entries: entries.map(toEntry), ...more };
  const decoded: FeedBatch[] = [];
  const decoder = new FrameDecoder((body) => {
    if (body.case === "feedBatch") decoded.push(body.value);
  });
  decoder.push(encodeFrame({ case: "feedBatch", value }));
  const [only] = decoded;
  assert.ok(only);
  return only;
}

const server = (id: string, incarnation: bigint): Entry => ({ kind: "server", id, incarnation });
const ended = (id: string, incarnation: bigint): Entry => ({ kind: "ended", id, incarnation });
const whole = { snapshot: true, complete: true };

test("F1: a snapshot counts when it is complete, until then what was known stays", () => {
  const book = new EndpointBook();
  book.apply(batch([0n, 5n], [server("1", 1n)], whole));
  assert.deepEqual(book.addressesOf("world"), ["10.0.0.1:1"]);
  book.apply(batch([0n, 9n], [server("2", 7n)], { snapshot: true, complete: false }));
  assert.deepEqual(book.addressesOf("world"), ["10.0.0.1:1"]);
  assert.equal(book.revision, 0n, "a session that ends here must begin with a snapshot");
  const last = book.apply(batch([0n, 9n], [server("3", 8n)], whole));
  assert.deepEqual(book.addressesOf("world").toSorted(), ["10.0.0.1:2", "10.0.0.1:3"]);
  assert.equal(book.revision, 9n);
  assert.ok(last.ok && last.changed.has("world"));
});

test("P2: a batch that does not follow the last one is refused", () => {
  const book = new EndpointBook();
  assert.equal(book.apply(batch([3n, 4n], [])).ok, false);
  book.apply(batch([0n, 5n], [], whole));
  assert.equal(book.apply(batch([5n, 6n], [server("1", 6n)])).ok, true);
  assert.equal(book.apply(batch([5n, 7n], [])).ok, false);
  assert.equal(book.apply(batch([7n, 8n], [])).ok, false);
});

test("an ended incarnation takes only itself away", () => {
  const book = new EndpointBook();
  book.apply(batch([0n, 5n], [ended("1", 1n), server("1", 4n)], whole));
  book.apply(batch([5n, 6n], [ended("1", 3n)]));
  assert.equal(book.countOf("world"), 1);
  book.apply(batch([6n, 7n], [ended("1", 4n)]));
  assert.equal(book.countOf("world"), 0);
  assert.equal(book.serverCount, 0);
});

test("a broken session goes on from a snapshot, and keeps what it knew until then", () => {
  const book = new EndpointBook();
  book.apply(batch([0n, 5n], [server("1", 1n), { kind: "service", guarded: true }], whole));
  assert.equal(book.services.get("world"), true);
  book.apply(batch([0n, 9n], [], { snapshot: true, complete: false }));
  book.restart();
  book.forgetRevision();
  assert.equal(book.revision, 0n);
  assert.deepEqual(book.addressesOf("world"), ["10.0.0.1:1"]);
  book.apply(batch([0n, 9n], [], whole));
  assert.deepEqual(book.addressesOf("world"), []);
});

test("a feed and a snapshot of its end tell the same", () => {
  const step = fc.record({ id: fc.constantFrom("1", "2", "3"), leaves: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const fed = new EndpointBook();
      fed.apply(batch([0n, 1n], [], whole));
      const living = new Map<string, bigint>();
      let revision = 1n;
      for (const { id, leaves } of steps) {
        const incarnation = living.get(id);
        if (leaves && incarnation === undefined) continue;
        const entry = leaves ? ended(id, incarnation ?? 0n) : server(id, revision + 1n);
        fed.apply(batch([revision, revision + 1n], [entry]));
        revision += 1n;
        if (leaves) living.delete(id);
        else living.set(id, revision);
      }
      const snapshot = new EndpointBook();
      const entries = [...living].map(([id, incarnation]) => server(id, incarnation));
      snapshot.apply(batch([0n, revision], entries, whole));
      assert.deepEqual(
        fed.addressesOf("world").toSorted(),
        snapshot.addressesOf("world").toSorted(),
      );
    }),
  );
});
