//! One shard in the owner map: 24 bytes, its key lies in the part's arena.

use std::sync::atomic::{AtomicU32, Ordering};

/// Ages are kept in units of 64 ms, so that 32 bits last for eight years of uptime.
const TICK_SHIFT: u32 = 6;

const MOVING: u32 = 1 << 8;
const USED: u32 = 1 << 9;
const REFRESHING: u32 = 1 << 10;
const FLIGHT_SHIFT: u32 = 11;
const FLIGHT_MAX: u32 = u32::MAX >> FLIGHT_SHIFT;

/// What a shard's owner map entry says. Readers change only `state`, under the part's read lock.
#[derive(Debug)]
pub(crate) struct Entry {
    pub epoch: u64,
    /// Index of the server record.
    pub server: u32,
    /// Start of the key in the arena.
    pub offset: u32,
    /// When the resolve was sent that brought the answer, in ticks; 0: no longer believed.
    resolved: u32,
    /// Bits 0-7: key length - 1; then moving, used, refreshing; from bit 11: attempts in flight.
    state: AtomicU32,
}

impl Entry {
    pub fn new(key_length: usize, offset: u32, epoch: u64, server: u32, now_ms: u64) -> Entry {
        debug_assert!((1..=256).contains(&key_length));
        let length = u32::try_from(key_length - 1).unwrap_or(255) & 0xff;
        Entry {
            epoch,
            server,
            offset,
            resolved: tick(now_ms),
            state: AtomicU32::new(length),
        }
    }

    pub fn key_length(&self) -> usize {
        (self.state.load(Ordering::Relaxed) & 0xff) as usize + 1
    }

    pub fn key<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[self.offset as usize..][..self.key_length()]
    }

    /// A newer or the same answer; keeps the count only for the same epoch.
    pub fn answer(&mut self, epoch: u64, server: u32, now_ms: u64) {
        let state = self.state.get_mut();
        *state &= !(MOVING | REFRESHING);
        if self.epoch != epoch {
            *state &= 0xff;
        }
        self.epoch = epoch;
        self.server = server;
        self.resolved = tick(now_ms);
    }

    pub fn set_moving(&mut self) {
        *self.state.get_mut() |= MOVING;
    }

    pub fn is_moving(&self) -> bool {
        self.state.load(Ordering::Relaxed) & MOVING != 0
    }

    /// Not believed any more, but its attempts in flight still count.
    pub fn set_stale(&mut self) {
        self.resolved = 0;
        *self.state.get_mut() &= !REFRESHING;
    }

    /// Since the resolve; very large when stale.
    pub fn age_ms(&self, now_ms: u64) -> u64 {
        if self.resolved == 0 {
            return u64::MAX;
        }
        u64::from(tick(now_ms).saturating_sub(self.resolved)) << TICK_SHIFT
    }

    /// Remembers a use that was not just the one that asked for it, for eviction. Writes only when
    /// it must: the line is shared by all workers.
    pub fn mark_used(&self) {
        if self.state.load(Ordering::Relaxed) & USED == 0 {
            self.state.fetch_or(USED, Ordering::Relaxed);
        }
    }

    pub fn is_used(&self) -> bool {
        self.state.load(Ordering::Relaxed) & USED != 0
    }

    /// Clears the mark and tells whether it was set.
    pub fn take_used(&mut self) -> bool {
        let state = self.state.get_mut();
        let used = *state & USED != 0;
        *state &= !USED;
        used
    }

    /// `true` for the first caller: it has to ask.
    pub fn start_refresh(&self) -> bool {
        self.state.load(Ordering::Relaxed) & REFRESHING == 0
            && self.state.fetch_or(REFRESHING, Ordering::Relaxed) & REFRESHING == 0
    }

    pub fn cancel_refresh(&self) {
        self.state.fetch_and(!REFRESHING, Ordering::Relaxed);
    }

    pub fn in_flight(&self) -> u32 {
        self.state.load(Ordering::SeqCst) >> FLIGHT_SHIFT
    }

    /// Counts one attempt; `false` when two million are under way already.
    pub fn enter(&self) -> bool {
        self.state
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
                (state >> FLIGHT_SHIFT < FLIGHT_MAX).then(|| state + (1 << FLIGHT_SHIFT))
            })
            .is_ok()
    }

    /// Ends one attempt; `true` when it was the last of a moving shard.
    pub fn leave(&self) -> bool {
        let before = self
            .state
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
                (state >> FLIGHT_SHIFT > 0).then(|| state - (1 << FLIGHT_SHIFT))
            });
        before.is_ok_and(|state| state >> FLIGHT_SHIFT == 1 && state & MOVING != 0)
    }
}

fn tick(now_ms: u64) -> u32 {
    u32::try_from(now_ms >> TICK_SHIFT)
        .unwrap_or(u32::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c3_an_entry_has_24_bytes() {
        assert_eq!(size_of::<Entry>(), 24);
    }

    #[test]
    fn m4_the_count_lives_beside_the_flags() {
        let mut entry = Entry::new(256, 0, 7, 1, 1_000);
        assert!(entry.enter() && entry.enter());
        entry.mark_used();
        entry.set_moving();
        assert_eq!((entry.in_flight(), entry.key_length()), (2, 256));
        assert!(!entry.leave());
        assert!(entry.leave());
        assert!(!entry.leave());
        assert_eq!(entry.in_flight(), 0);
        assert!(entry.take_used() && !entry.take_used());
    }

    #[test]
    fn a_new_epoch_starts_its_own_count() {
        let mut entry = Entry::new(3, 0, 7, 1, 1_000);
        assert!(entry.enter());
        entry.answer(7, 1, 2_000);
        assert_eq!(entry.in_flight(), 1);
        entry.answer(9, 2, 2_000);
        assert_eq!(
            (entry.in_flight(), entry.key_length(), entry.epoch),
            (0, 3, 9)
        );
    }

    #[test]
    fn a5_age_counts_from_the_resolve_and_stale_is_beyond_any_age() {
        let mut entry = Entry::new(1, 0, 7, 1, 64_000);
        assert_eq!(entry.age_ms(64_000 + 640), 640);
        entry.set_stale();
        assert_eq!(entry.age_ms(0), u64::MAX);
    }
}
