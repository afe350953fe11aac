/** The layout of `STORE_SCHEMA_VERSION`. `meta` has one row, on which every commit is conditional. */
export const SCHEMA = `
CREATE TABLE meta (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  generation BLOB NOT NULL,
  term INTEGER NOT NULL,
  revision INTEGER NOT NULL
) STRICT;
CREATE TABLE services (
  name TEXT PRIMARY KEY,
  lease_ms INTEGER NOT NULL,
  feed_lease_ms INTEGER NOT NULL,
  wait_feed_lease_ms INTEGER NOT NULL,
  idle_ms INTEGER NOT NULL,
  drain_ms INTEGER NOT NULL,
  park_ms INTEGER NOT NULL,
  guarded INTEGER NOT NULL,
  minted INTEGER NOT NULL,
  placement INTEGER NOT NULL,
  moves_per_second INTEGER NOT NULL,
  removed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE servers (
  incarnation INTEGER PRIMARY KEY,
  service TEXT NOT NULL,
  server_id TEXT NOT NULL,
  address TEXT NOT NULL,
  zone TEXT NOT NULL,
  guarded INTEGER NOT NULL,
  capacity INTEGER NOT NULL,
  secret BLOB NOT NULL,
  lease_ms INTEGER NOT NULL,
  state INTEGER NOT NULL
) STRICT;
CREATE TABLE tombstones (
  service TEXT NOT NULL,
  server_id TEXT NOT NULL,
  incarnation INTEGER NOT NULL,
  after INTEGER NOT NULL,
  clear INTEGER NOT NULL,
  PRIMARY KEY (service, server_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE shards (
  service TEXT NOT NULL,
  key TEXT NOT NULL,
  incarnation INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  moving_since INTEGER NOT NULL,
  move_to TEXT NOT NULL,
  PRIMARY KEY (service, key)
) STRICT, WITHOUT ROWID;
`;
