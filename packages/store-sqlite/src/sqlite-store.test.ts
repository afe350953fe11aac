import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { BelayError, type Random } from "@belay/model";
import type { Store } from "@belay/ownership";
import { testStoreContract } from "../../testkit/src/store-contract.ts";
import { openSqliteStore } from "./sqlite-store.ts";

const root = mkdtempSync(join(tmpdir(), "belay-store-"));
after(() => rmSync(root, { recursive: true, force: true }));
let count = 0;

const freshDirectory = (): string => join(root, `s${(count += 1)}`, "data");
const random: Random = {
  next: () => 0.5,
  bytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
};
const open = (directory: string): Store => openSqliteStore({ directory, random });

let last = "";
testStoreContract("sqlite", {
  create: () => open((last = freshDirectory())),
  reopen: () => open(last),
});

function problemOf(run: () => unknown): BelayError {
  try {
    run();
  } catch (thrown) {
    assert.ok(thrown instanceof BelayError, String(thrown));
    return thrown;
  }
  throw new Error("it did not throw");
}

test("the directory and the file are closed to other users", async () => {
  const directory = freshDirectory();
  const store = open(directory);
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  assert.equal(statSync(join(directory, "ownership.db")).mode & 0o777, 0o600);
  await store.close();
});

test("T5 a second process is told that the store is in use", async () => {
  const directory = freshDirectory();
  const store = open(directory);
  const problem = problemOf(() => open(directory));
  assert.equal(problem.code, "store-locked");
  assert.match(problem.message, /stop the other coordinator/);
  await store.close();
  await open(directory).close();
});

test("T5 the journal is WAL and every commit is synced", async () => {
  const directory = freshDirectory();
  const store = open(directory);
  await store.takeOver(1);
  // Read by SQLite itself: bytes 18 and 19 of the file say 2 for WAL.
  const header = readFileSync(join(directory, "ownership.db")).subarray(18, 20);
  assert.deepEqual(Array.from(header), [2, 2]);
  await store.close();
});

test("a store of a newer layout is refused and left as it is", async () => {
  const directory = freshDirectory();
  await open(directory).close();
  const file = join(directory, "ownership.db");
  const database = new DatabaseSync(file);
  database.exec("PRAGMA user_version = 999");
  database.close();
  const problem = problemOf(() => open(directory));
  assert.equal(problem.code, "store-newer");
  assert.match(problem.message, /layout 999/);
});

test("a file that is no store is named, with what to do", async () => {
  const directory = freshDirectory();
  await open(directory).close();
  writeFileSync(join(directory, "ownership.db"), "no database, however long it is ".repeat(99));
  const problem = problemOf(() => open(directory));
  assert.equal(problem.code, "store-failed");
  assert.match(problem.message, /put a backup in its place/);
});

test("damage inside the file is named as damage, when it is opened or when it is loaded", async () => {
  const directory = freshDirectory();
  const file = join(directory, "ownership.db");
  const store = open(directory);
  const { term, revision } = await store.takeOver(1);
  const put = (key: string) =>
    ({
      op: "put",
      row: {
        table: "shard",
        service: "w",
        key,
        incarnation: 1n,
        epoch: 1n,
        movingSince: 0n,
        moveTo: "",
      },
    }) as const;
  const changes = Array.from({ length: 500 }, (_, index) => put(`key-${index}`));
  await store.commit({ term, from: revision, to: revision + 1n, changes });
  await store.close();
  const bytes = readFileSync(file);
  for (let at = 4_200; at < bytes.length; at += 97) bytes[at] = (bytes[at] ?? 0) ^ 0xff;
  writeFileSync(file, bytes);
  const read = async (): Promise<void> => {
    Array.from(await open(directory).load());
  };
  await assert.rejects(
    read(),
    (thrown) => thrown instanceof BelayError && thrown.code === "store-failed",
  );
});

test("a directory that cannot be made is told as such", () => {
  const file = join(root, "plain-file");
  writeFileSync(file, "");
  const problem = problemOf(() => open(join(file, "data")));
  assert.equal(problem.code, "store-failed");
});

test("a full disk fails the commit, keeps what was there, and goes on when there is room", async () => {
  const store = openSqliteStore({ directory: freshDirectory(), random, bytesMax: 128 * 1024 });
  const { term, revision } = await store.takeOver(1);
  const big = {
    table: "shard",
    service: "w",
    incarnation: 1n,
    epoch: 1n,
    movingSince: 0n,
  } as const;
  const row = (key: string, size: number) => ({ ...big, key, moveTo: "x".repeat(size) });
  const batch = (from: bigint, size: number, name: string) => ({
    term,
    from,
    to: from + 1n,
    changes: [{ op: "put", row: row(name, size) }] as const,
  });
  assert.equal((await store.commit(batch(revision, 10, "small"))).outcome, "committed");
  const problem = await store.commit(batch(revision + 1n, 1_000_000, "huge"));
  assert.ok(problem.outcome === "failed", problem.outcome);
  assert.match(problem.message, /make room/);
  assert.equal(problem.code, "disk-full");
  assert.equal((await store.commit(batch(revision + 1n, 10, "again"))).outcome, "committed");
  assert.equal(Array.from(await store.load()).length, 2);
  await store.close();
});
