//! Numbers for metrics.

use crate::answer::Refusal;

/// Upper bounds of the resolve latency buckets in milliseconds; the last bucket has no bound.
pub const RESOLVE_BUCKETS_MS: [u64; 11] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000];

/// A reading of the process's state; cheap enough for every scrape, not for every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub map_entries: u64,
    /// Heap bytes of the owner map.
    pub map_bytes: u64,
    pub parked: u64,
    pub open_streams: u64,
    pub connected: bool,
    /// A complete snapshot was applied once.
    pub synced: bool,
    pub revision: u64,
    pub term: u64,
    /// Since the last frame from the coordinator; `u64::MAX` before the first.
    pub feed_age_ms: u64,
    /// Smallest feed lease left over all services; 0 when over, `u64::MAX` without services.
    pub lease_left_ms: u64,
    pub services: u64,
    pub servers: u64,
    pub reconnects: u64,
    pub resolves: u64,
    /// Counts per bucket of `RESOLVE_BUCKETS_MS`, not cumulative.
    pub resolve_ms: [u64; RESOLVE_BUCKETS_MS.len() + 1],
    pub resolve_ms_sum: u64,
    /// Answers of the coordinator by `Refusal as usize`.
    pub refusals: [u64; Refusal::COUNT],
    pub placed: u64,
    pub moves_seen: u64,
    pub evicted: u64,
}
