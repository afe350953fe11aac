//! Counters of the process, updated without locks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::answer::Refusal;
use crate::stats::RESOLVE_BUCKETS_MS;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub connected: AtomicBool,
    pub revision: AtomicU64,
    pub term: AtomicU64,
    /// Time of the last frame; 0: none yet.
    pub heard: AtomicU64,
    pub reconnects: AtomicU64,
    pub resolves: AtomicU64,
    pub resolve_ms: [AtomicU64; RESOLVE_BUCKETS_MS.len() + 1],
    pub resolve_ms_sum: AtomicU64,
    pub refusals: [AtomicU64; Refusal::COUNT],
    pub placed: AtomicU64,
    pub moves_seen: AtomicU64,
}

impl Counters {
    pub fn resolved(&self, ms: u64) {
        let bucket = RESOLVE_BUCKETS_MS
            .iter()
            .position(|bound| ms <= *bound)
            .unwrap_or(RESOLVE_BUCKETS_MS.len());
        add(&self.resolve_ms[bucket], 1);
        add(&self.resolve_ms_sum, ms);
    }

    pub fn refused(&self, refusal: Refusal) {
        add(&self.refusals[refusal as usize], 1);
    }
}

pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

pub(crate) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
