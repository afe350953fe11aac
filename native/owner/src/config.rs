//! How a proxy introduces itself, and its limits.

use std::net::SocketAddr;

/// Settings of the process; constant while it lives.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    pub coordinator: SocketAddr,
    /// 1 to 128 bytes, for people: `edge-1`.
    pub name: String,
    pub pool: String,
    /// Empty on loopback.
    pub token: String,
    /// `belay 0.1.0 envoy 1.40.0`.
    pub software: String,
    pub zone: String,
    /// Longest wait before `Waker::ready` without a snapshot; 0 waits for ever.
    pub max_wait_ms: u64,
    /// Worker threads whose LB policies must report their hosts (A4); 0: those that did so far.
    pub workers: u32,
    pub limits: Limits,
}

/// Every queue and table of this crate has one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Keys in the owner map; beyond it the coldest are forgotten.
    pub entries: usize,
    /// Streams held in the process.
    pub parked: usize,
    /// Streams held for one shard.
    pub parked_per_shard: usize,
    /// Shards being asked for at the same time.
    pub flights: usize,
    /// Refusals remembered for up to a second (P5).
    pub back_off: usize,
    /// Mint claims waiting for an answer.
    pub mints: usize,
    /// Bytes waiting to be written to the coordinator; beyond it the connection is made anew.
    pub write_bytes: usize,
    /// Entries of one snapshot.
    pub snapshot_entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            entries: 4_000_000,
            parked: 65_536,
            parked_per_shard: 4_096,
            flights: 65_536,
            back_off: 65_536,
            mints: 16_384,
            write_bytes: 16 << 20,
            snapshot_entries: 4_000_000,
        }
    }
}
