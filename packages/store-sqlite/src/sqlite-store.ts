import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { BelayError, type Random } from "@belay/model";
import {
  type Batch,
  type Change,
  type CommitOutcome,
  type Row,
  type ServerRow,
  type ServiceRow,
  type ShardRow,
  STORE_SCHEMA_VERSION,
  type Store,
  type StoreMeta,
  type TakeOver,
  takeOverRevision,
  type TombstoneRow,
} from "@belay/ownership";
import { SCHEMA } from "./schema.ts";
import { toStoreError } from "./sqlite-problem.ts";
import { serverTable, serviceTable, shardTable, tombstoneTable } from "./table.ts";
import { TableStatements } from "./table-statements.ts";

const FILE_NAME = "ownership.db";
const GENERATION_BYTES = 16;
const DIRECTORY_MODE = 0o700;
/** SQLite's default. */
const PAGE_BYTES = 4096;
const FILE_MODE = 0o600;

export interface SqliteStoreOptions {
  /** Made if it is not there, and closed to other users: it holds the servers' secrets. */
  readonly directory: string;
  /** For the generation of a new store (T4). */
  readonly random: Random;
  /** Largest size of the file; beyond it commits fail as on a full disk. No limit by default. */
  readonly bytesMax?: number;
}

/**
 * Opens the store in `directory`, or makes it. Throws a BelayError that says what to do:
 * `store-locked`, `store-newer`, `disk-full`, `store-failed`.
 */
export function openSqliteStore(options: SqliteStoreOptions): Store {
  const file = join(options.directory, FILE_NAME);
  let database: DatabaseSync | undefined;
  try {
    mkdirSync(options.directory, { recursive: true, mode: DIRECTORY_MODE });
    chmodSync(options.directory, DIRECTORY_MODE);
    database = new DatabaseSync(file);
    chmodSync(file, FILE_MODE);
    prepare(database, options, file);
    return new SqliteStore(database, file);
  } catch (thrown) {
    database?.close();
    throw toStoreError(thrown, file);
  }
}

/** T5: one process has it, and a commit that returned survives a power cut. */
function prepare(
  database: DatabaseSync,
  { random, bytesMax }: SqliteStoreOptions,
  file: string,
): void {
  database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL; PRAGMA busy_timeout = 0");
  if (bytesMax !== undefined) {
    database.exec(`PRAGMA max_page_count = ${Math.ceil(bytesMax / PAGE_BYTES)}`);
  }
  database.exec("BEGIN IMMEDIATE");
  const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
  if (version > STORE_SCHEMA_VERSION) {
    throw new BelayError(
      "store-newer",
      `${file} has layout ${version}, this version of Belay knows up to ${STORE_SCHEMA_VERSION}: run the newer version that wrote it`,
    );
  }
  if (version === 0) {
    database.exec(SCHEMA);
    const insert = "INSERT INTO meta (id, generation, term, revision) VALUES (1, ?, 0, 0)";
    database.prepare(insert).run(random.bytes(GENERATION_BYTES));
    database.exec(`PRAGMA user_version = ${STORE_SCHEMA_VERSION}`);
  }
  database.exec("COMMIT");
}

class SqliteStore implements Store {
  readonly name = "sqlite";
  readonly exclusive = true;
  readonly #database: DatabaseSync;
  readonly #file: string;
  readonly #readMeta;
  readonly #advance;
  readonly #takeOver;
  readonly #services: TableStatements<ServiceRow>;
  readonly #servers: TableStatements<ServerRow>;
  readonly #tombstones: TableStatements<TombstoneRow>;
  readonly #shards: TableStatements<ShardRow>;

  constructor(database: DatabaseSync, file: string) {
    this.#database = database;
    this.#file = file;
    this.#readMeta = database.prepare("SELECT generation, term, revision FROM meta");
    this.#readMeta.setReadBigInts(true);
    this.#advance = database.prepare(
      "UPDATE meta SET revision = ? WHERE term = ? AND revision = ?",
    );
    this.#takeOver = database.prepare("UPDATE meta SET term = ?, revision = ?");
    this.#services = new TableStatements(database, serviceTable);
    this.#servers = new TableStatements(database, serverTable);
    this.#tombstones = new TableStatements(database, tombstoneTable);
    this.#shards = new TableStatements(database, shardTable);
  }

  takeOver(unixSeconds: number): Promise<TakeOver> {
    return this.#attempt(() => {
      this.#database.exec("BEGIN IMMEDIATE");
      const { generation, term, revision } = this.#meta();
      const taken = {
        generation,
        term: term + 1n,
        revision: takeOverRevision(revision, unixSeconds),
      };
      this.#takeOver.run(taken.term, taken.revision);
      this.#database.exec("COMMIT");
      return { ...taken, previousRevision: revision };
    });
  }

  load(): Promise<Iterable<Row>> {
    return this.#attempt(() => this.#rows());
  }

  commit(batch: Batch): Promise<CommitOutcome> {
    return Promise.resolve(this.#commit(batch));
  }

  close(): Promise<void> {
    return this.#attempt(() => this.#database.close());
  }

  /** Runs now, answers as a promise; what is thrown becomes a BelayError. */
  async #attempt<Result>(run: () => Result): Promise<Result> {
    try {
      return await Promise.resolve(run());
    } catch (thrown) {
      this.#rollBack();
      throw toStoreError(thrown, this.#file);
    }
  }

  #meta(): StoreMeta {
    const row = this.#readMeta.get();
    const { generation, term, revision } = row ?? {};
    if (
      !(generation instanceof Uint8Array) ||
      typeof term !== "bigint" ||
      typeof revision !== "bigint"
    ) {
      throw new BelayError(
        "store-failed",
        `${this.#file} has lost its meta row: put a backup in its place`,
      );
    }
    return { generation, term, revision };
  }

  *#rows(): Generator<Row> {
    try {
      yield* this.#services.rows();
      yield* this.#servers.rows();
      yield* this.#tombstones.rows();
      yield* this.#shards.rows();
    } catch (thrown) {
      throw toStoreError(thrown, this.#file);
    }
  }

  #commit(batch: Batch): CommitOutcome {
    let deciding = false;
    try {
      this.#database.exec("BEGIN IMMEDIATE");
      if (this.#advance.run(batch.to, batch.term, batch.from).changes === 0) {
        this.#rollBack();
        return this.#refused(batch);
      }
      for (const change of batch.changes) this.#apply(change);
      deciding = true;
      this.#database.exec("COMMIT");
      return { outcome: "committed" };
    } catch (thrown) {
      this.#rollBack();
      const { code, message } = toStoreError(thrown, this.#file);
      const why = code === "disk-full" ? { message, code } : { message };
      // A COMMIT that failed may have become durable: the same batch sent again finds out (T3).
      return { outcome: deciding ? "unknown" : "failed", ...why };
    }
  }

  /** The condition on (term, revision) was not met: deposed (T1), or committed the last time (T3). */
  #refused(batch: Batch): CommitOutcome {
    const { term, revision } = this.#meta();
    if (term !== batch.term) return { outcome: "deposed", term };
    if (revision === batch.to) return { outcome: "committed" };
    const message = `${this.#file} is at revision ${revision}, the batch begins at ${batch.from}`;
    return { outcome: "failed", message };
  }

  #rollBack(): void {
    if (this.#database.isOpen && this.#database.isTransaction) this.#database.exec("ROLLBACK");
  }

  #apply(change: Change): void {
    if (change.op === "put") this.#put(change.row);
    else this.#delete(change.ref);
  }

  #put(row: Row): void {
    switch (row.table) {
      case "service":
        this.#services.put(row);
        break;
      case "server":
        this.#servers.put(row);
        break;
      case "tombstone":
        this.#tombstones.put(row);
        break;
      case "shard":
        this.#shards.put(row);
        break;
    }
  }

  #delete(ref: Extract<Change, { op: "delete" }>["ref"]): void {
    switch (ref.table) {
      case "service":
        this.#services.delete(ref);
        break;
      case "server":
        this.#servers.delete(ref);
        break;
      case "tombstone":
        this.#tombstones.delete(ref);
        break;
      case "shard":
        this.#shards.delete(ref);
        break;
    }
  }
}
