import {
  type Row,
  type RowRef,
  type ServerRow,
  type ServiceRow,
  type ShardRow,
  storedEnum,
  type TombstoneRow,
} from "@belay/ownership";
import type { SQLInputValue, SQLOutputValue } from "node:sqlite";

type Columns = Readonly<Record<string, SQLOutputValue>>;

/** How the rows of one table are named, written and read. */
export interface Table<R extends Row> {
  readonly name: string;
  readonly columns: readonly string[];
  readonly keyColumns: readonly string[];
  /** In the order of `columns`. */
  values(row: R): SQLInputValue[];
  /** In the order of `keyColumns`. */
  key(ref: Extract<RowRef, { table: R["table"] }>): SQLInputValue[];
  read(columns: Columns): R;
}

export const serviceTable: Table<ServiceRow> = {
  name: "services",
  columns: [
    "name",
    "lease_ms",
    "feed_lease_ms",
    "wait_feed_lease_ms",
    "idle_ms",
    "drain_ms",
    "park_ms",
    "guarded",
    "minted",
    "placement",
    "moves_per_second",
    "removed",
  ],
  keyColumns: ["name"],
  values: (row) => [
    row.name,
    row.leaseMs,
    row.feedLeaseMs,
    row.waitFeedLeaseMs,
    row.idleMs,
    row.drainMs,
    row.parkMs,
    flag(row.guarded),
    flag(row.minted),
    row.placement,
    row.movesPerSecond,
    flag(row.removed),
  ],
  key: (ref) => [ref.name],
  read: (columns) => ({
    table: "service",
    name: text(columns["name"]),
    leaseMs: number(columns["lease_ms"]),
    feedLeaseMs: number(columns["feed_lease_ms"]),
    waitFeedLeaseMs: number(columns["wait_feed_lease_ms"]),
    idleMs: number(columns["idle_ms"]),
    drainMs: number(columns["drain_ms"]),
    parkMs: number(columns["park_ms"]),
    guarded: isSet(columns["guarded"]),
    minted: isSet(columns["minted"]),
    placement: storedEnum.placement(number(columns["placement"])),
    movesPerSecond: number(columns["moves_per_second"]),
    removed: isSet(columns["removed"]),
  }),
};

export const serverTable: Table<ServerRow> = {
  name: "servers",
  columns: [
    "incarnation",
    "service",
    "server_id",
    "address",
    "zone",
    "guarded",
    "capacity",
    "secret",
    "lease_ms",
    "state",
  ],
  keyColumns: ["incarnation"],
  values: (row) => [
    row.incarnation,
    row.service,
    row.serverId,
    row.address,
    row.zone,
    flag(row.guarded),
    row.capacity,
    row.secret,
    row.leaseMs,
    row.state,
  ],
  key: (ref) => [ref.incarnation],
  read: (columns) => ({
    table: "server",
    incarnation: integer(columns["incarnation"]),
    service: text(columns["service"]),
    serverId: text(columns["server_id"]),
    address: text(columns["address"]),
    zone: text(columns["zone"]),
    guarded: isSet(columns["guarded"]),
    capacity: number(columns["capacity"]),
    secret: blob(columns["secret"]),
    leaseMs: number(columns["lease_ms"]),
    state: storedEnum.serverState(number(columns["state"])),
  }),
};

export const tombstoneTable: Table<TombstoneRow> = {
  name: "tombstones",
  columns: ["service", "server_id", "incarnation", "after", "clear"],
  keyColumns: ["service", "server_id"],
  values: (row) => [row.service, row.serverId, row.incarnation, row.after, flag(row.clear)],
  key: (ref) => [ref.service, ref.serverId],
  read: (columns) => ({
    table: "tombstone",
    service: text(columns["service"]),
    serverId: text(columns["server_id"]),
    incarnation: integer(columns["incarnation"]),
    after: storedEnum.after(number(columns["after"])),
    clear: isSet(columns["clear"]),
  }),
};

export const shardTable: Table<ShardRow> = {
  name: "shards",
  columns: ["service", "key", "incarnation", "epoch", "moving_since", "move_to"],
  keyColumns: ["service", "key"],
  values: (row) => [row.service, row.key, row.incarnation, row.epoch, row.movingSince, row.moveTo],
  key: (ref) => [ref.service, ref.key],
  read: (columns) => ({
    table: "shard",
    service: text(columns["service"]),
    key: text(columns["key"]),
    incarnation: integer(columns["incarnation"]),
    epoch: integer(columns["epoch"]),
    movingSince: integer(columns["moving_since"]),
    moveTo: text(columns["move_to"]),
  }),
};

function flag(value: boolean): number {
  return value ? 1 : 0;
}

/** Statements read integers as bigint: a revision does not fit a number for ever. */
function integer(value: SQLOutputValue | undefined): bigint {
  if (typeof value !== "bigint") throw new TypeError(`not an integer: ${typeof value}`);
  return value;
}

const number = (value: SQLOutputValue | undefined): number => Number(integer(value));

const isSet = (value: SQLOutputValue | undefined): boolean => integer(value) !== 0n;

function text(value: SQLOutputValue | undefined): string {
  if (typeof value !== "string") throw new TypeError(`not a text: ${typeof value}`);
  return value;
}

function blob(value: SQLOutputValue | undefined): Uint8Array {
  if (!(value instanceof Uint8Array)) throw new TypeError(`not a blob: ${typeof value}`);
  return value;
}
