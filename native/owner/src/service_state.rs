//! One service inside: its map, its servers, and whether any of it may be believed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::answer::{Answer, Pick, Refusal, Server, ServerAnswer};
use crate::entry::Entry;
use crate::in_flight::InFlight;
use crate::process_state::Shared;
use crate::servers::{Record, Servers};
use crate::shard::Shard;
use crate::shard_map::ShardMap;
use crate::signal::{Command, Signal};

/// Retry-After of what passes by itself.
const RETRY_AFTER_MS: u32 = 1_000;
/// A key that is used this long after it was resolved is not a single use: it is evicted last.
const USED_AGE_MS: u64 = 1_000;
pub(crate) const KEY_BYTES_MAX: usize = 256;

/// The service's ownership facts, from the feed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub feed_lease_ms: u64,
    pub margin_ms: u64,
    pub idle_ms: u64,
    pub drain_ms: u32,
    pub park_ms: u32,
    pub guarded: bool,
}

pub(crate) struct ServiceState {
    pub id: u32,
    pub name: Box<str>,
    pub map: ShardMap,
    pub servers: RwLock<Servers>,
    pub signal: Arc<Signal>,
    shared: Arc<Shared>,
    defined: AtomicBool,
    guarded: AtomicBool,
    idle_ms: AtomicU64,
    /// P1: no answer is used at or after this time. 0 while there is no lease.
    lease_until: AtomicU64,
    facts: RwLock<Facts>,
}

enum Found {
    Absent,
    Moving,
    TooMany,
    Owner { pick: Pick, refresh: bool },
}

impl ServiceState {
    pub fn new(id: u32, name: &str, shared: &Arc<Shared>) -> ServiceState {
        ServiceState {
            id,
            name: name.into(),
            map: ShardMap::new(),
            servers: RwLock::default(),
            signal: Arc::clone(&shared.signal),
            shared: Arc::clone(shared),
            defined: AtomicBool::new(false),
            guarded: AtomicBool::new(false),
            idle_ms: AtomicU64::new(0),
            lease_until: AtomicU64::new(0),
            facts: RwLock::default(),
        }
    }

    pub fn define(&self, facts: Facts) {
        *self.facts.write() = facts;
        self.guarded.store(facts.guarded, Ordering::Release);
        self.idle_ms.store(facts.idle_ms, Ordering::Relaxed);
        self.defined.store(true, Ordering::Release);
    }

    pub fn undefine(&self) {
        self.lease_until.store(0, Ordering::Release);
        self.defined.store(false, Ordering::Release);
    }

    pub fn is_defined(&self) -> bool {
        self.defined.load(Ordering::Acquire)
    }

    pub fn is_guarded(&self) -> bool {
        self.guarded.load(Ordering::Acquire)
    }

    pub fn facts(&self) -> Facts {
        *self.facts.read()
    }

    pub fn lease_until(&self) -> u64 {
        self.lease_until.load(Ordering::Acquire)
    }

    pub fn set_lease_until(&self, until: u64) {
        self.lease_until.store(until, Ordering::Release);
    }

    fn is_believed(&self, now: u64) -> bool {
        now < self.lease_until()
    }

    fn disbelief(&self) -> Refusal {
        if !self.shared.is_synced() {
            Refusal::NoSnapshot
        } else if self.is_defined() {
            Refusal::LeaseOver
        } else {
            Refusal::ServiceUnknown
        }
    }

    /// The map's answer at `now`. With `count`, an attempt on an unguarded service is counted under
    /// the part's lock, so that no move misses it (M4).
    pub fn look(self: &Arc<Self>, key: &[u8], now: u64, count: bool) -> Answer {
        if !self.is_believed(now) {
            return refused(self.disbelief());
        }
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Answer::Refused {
                reason: Refusal::UnknownKey,
                retry_after_ms: 0,
            };
        }
        let hash = self.map.hash(key);
        match self
            .map
            .with(hash, key, |entry| self.judge(entry, hash, now, count))
        {
            Found::Owner { pick, refresh } => {
                if refresh {
                    self.refresh(key, hash);
                }
                Answer::Owner(pick)
            }
            Found::Moving => Answer::Moving,
            Found::TooMany => refused(Refusal::ParkFull),
            Found::Absent => self.miss(key, now),
        }
    }

    fn judge(self: &Arc<Self>, entry: Option<&Entry>, hash: u64, now: u64, count: bool) -> Found {
        let Some(entry) = entry else {
            return Found::Absent;
        };
        let (idle_ms, age_ms) = (self.idle_ms.load(Ordering::Relaxed), entry.age_ms(now));
        if is_too_old(age_ms, idle_ms) {
            return Found::Absent;
        }
        let servers = self.servers.read();
        let Some(record) = servers.by_index(entry.server) else {
            return Found::Absent;
        };
        if entry.is_moving() {
            return Found::Moving;
        }
        let mut in_flight = None;
        if count && !self.is_guarded() {
            if !entry.enter() {
                return Found::TooMany;
            }
            in_flight = Some(self.enter(record, Some((hash, entry.epoch))));
        }
        if age_ms >= USED_AGE_MS {
            entry.mark_used();
        }
        let pick = Pick {
            server: Arc::clone(&record.server),
            epoch: entry.epoch,
            in_flight,
            searches: 0,
        };
        Found::Owner {
            pick,
            refresh: is_old(age_ms, idle_ms) && entry.start_refresh(),
        }
    }

    /// A5: asked for in the background before the answer is too old to be used.
    fn refresh(&self, key: &[u8], hash: u64) {
        if !self.signal.send(Command::Refresh(Shard::new(self.id, key))) {
            self.map
                .with(hash, key, |entry| entry.map(Entry::cancel_refresh));
        }
    }

    fn miss(&self, key: &[u8], now: u64) -> Answer {
        {
            let back_off = self.shared.back_off.lock();
            if !back_off.is_empty()
                && let Some((reason, left_ms)) = back_off.get(&Shard::new(self.id, key), now)
            {
                let retry_after_ms = if reason == Refusal::UnknownKey {
                    0
                } else {
                    left_ms
                };
                return Answer::Refused {
                    reason,
                    retry_after_ms,
                };
            }
        }
        if self.shared.is_silent() {
            refused(Refusal::CoordinatorSilent)
        } else {
            Answer::Miss
        }
    }

    fn enter(self: &Arc<Self>, record: &Arc<Record>, shard: Option<(u64, u64)>) -> InFlight {
        record.enter();
        InFlight {
            service: Arc::clone(self),
            record: Arc::clone(record),
            shard,
        }
    }

    pub fn pick_server(self: &Arc<Self>, incarnation: u64, now: u64) -> Answer {
        if !self.is_believed(now) {
            return refused(self.disbelief());
        }
        let servers = self.servers.read();
        let Some(record) = servers.by_incarnation(incarnation) else {
            return Answer::Refused {
                reason: Refusal::ServerGone,
                retry_after_ms: 0,
            };
        };
        let in_flight = (!self.is_guarded()).then(|| self.enter(record, None));
        Answer::Owner(Pick {
            server: Arc::clone(&record.server),
            epoch: 0,
            in_flight,
            searches: 0,
        })
    }

    pub fn server(&self, id: &str, now: u64) -> ServerAnswer {
        if self.is_believed(now) {
            self.servers.read().by_id(id)
        } else {
            ServerAnswer::Refused(self.disbelief())
        }
    }

    pub fn active_servers(&self, now: u64) -> Arc<[Arc<Server>]> {
        if self.is_believed(now) {
            self.servers.read().active()
        } else {
            Arc::from([])
        }
    }

    /// Whether what a stream was picked on still holds; `moving` too when that is `allowed`.
    pub fn still_holds(
        &self,
        key: &[u8],
        epoch: u64,
        incarnation: u64,
        moving_allowed: bool,
        now: u64,
    ) -> bool {
        if !self.is_believed(now) || self.servers.read().by_incarnation(incarnation).is_none() {
            return false;
        }
        key.is_empty()
            || self.map.with(self.map.hash(key), key, |entry| {
                entry.is_some_and(|entry| {
                    entry.epoch == epoch && (moving_allowed || !entry.is_moving())
                })
            })
    }
}

/// A5: no longer used, as it may be counted as idle.
pub(crate) fn is_too_old(age_ms: u64, idle_ms: u64) -> bool {
    age_ms == u64::MAX || (idle_ms > 0 && age_ms > idle_ms / 2)
}

/// A5: to be refreshed. An eighth of `idle` is left for it, so that a short outage of the
/// coordinator costs nothing.
pub(crate) fn is_old(age_ms: u64, idle_ms: u64) -> bool {
    age_ms == u64::MAX || (idle_ms > 0 && age_ms > idle_ms / 8 * 3)
}

fn refused(reason: Refusal) -> Answer {
    Answer::Refused {
        reason,
        retry_after_ms: RETRY_AFTER_MS,
    }
}
