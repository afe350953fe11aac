//! Keeps the map fresh and small: keys with open streams are asked for again before they look idle,
//! unused ones are dropped (A5).

use crate::entry::Entry;
use crate::service_state::is_old;

use super::Machine;

/// Shortest time between two looks at the keys with open streams.
const LOOK_MS_MIN: u64 = 1_000;
/// Each service has one of its 128 parts swept at this interval.
const SWEEP_MS: u64 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Keeping {
    looked_at: u64,
    swept_at: u64,
    part: usize,
}

impl Machine {
    pub(super) fn keep(&mut self, now: u64) {
        if now.saturating_sub(self.keeping.swept_at) >= SWEEP_MS {
            self.keeping.swept_at = now;
            self.keeping.part = self.keeping.part.wrapping_add(1);
            self.sweep(now);
        }
        if now.saturating_sub(self.keeping.looked_at) >= self.look_ms() {
            self.keeping.looked_at = now;
            self.refresh_open(now);
        }
    }

    /// Often enough to meet the eighth of `idle` that is left for a refresh.
    fn look_ms(&self) -> u64 {
        let services = self.services.all();
        let idle = services
            .iter()
            .filter(|service| service.is_defined())
            .map(|service| service.facts().idle_ms);
        let idle = idle.filter(|idle| *idle > 0).min().unwrap_or(u64::MAX);
        (idle / 16).max(LOOK_MS_MIN)
    }

    fn sweep(&mut self, now: u64) {
        self.shared.back_off.lock().expire(now);
        for service in self.services.all().iter() {
            let idle_ms = service.facts().idle_ms;
            let age_ms_max = if idle_ms == 0 {
                u64::MAX - 1
            } else {
                idle_ms / 2
            };
            service
                .map
                .sweep(self.keeping.part, now, age_ms_max, &self.shared.totals);
        }
    }

    fn refresh_open(&mut self, now: u64) {
        if !self.session.is_in_step() {
            return;
        }
        for shard in self.shared.streams.shards() {
            let Some(service) = self
                .services
                .get(shard.service)
                .filter(|service| service.is_defined())
            else {
                continue;
            };
            let idle_ms = service.facts().idle_ms;
            let ask = service.map.with(
                service.map.hash(&shard.key),
                &shard.key,
                |entry| match entry {
                    None => true,
                    Some(entry) if entry.is_moving() => false,
                    Some(entry) => {
                        is_old(Entry::age_ms(entry, now), idle_ms) && entry.start_refresh()
                    }
                },
            );
            if ask {
                self.ask(now, &shard, 0, true);
            }
        }
    }
}
