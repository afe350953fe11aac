//! The servers of one service, interned: entries of the map name them by index, and one flag ends
//! them all (M1).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::answer::{Server, ServerAnswer};

/// Ids of gone servers that are remembered, for `server-gone`; the oldest are forgotten.
const GONE_MAX: usize = 16_384;
/// Expired incarnations that are remembered, longer than any of their answers can be late.
const EXPIRED_MAX: usize = 4_096;

/// One incarnation.
#[derive(Debug)]
pub(crate) struct Record {
    pub server: Arc<Server>,
    pub index: u32,
    draining: AtomicBool,
    ended: AtomicBool,
    /// Attempts under way, unguarded services only.
    in_flight: AtomicU32,
}

impl Record {
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::SeqCst)
    }

    /// Call under the servers' read lock with a record found there: ending takes the write lock, so
    /// that whoever ended it sees this attempt (M4).
    pub fn enter(&self) {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
    }

    /// `true` when it was the last attempt on an ended server.
    pub fn leave(&self) -> bool {
        self.in_flight.fetch_sub(1, Ordering::SeqCst) == 1 && self.is_ended()
    }
}

#[derive(Debug)]
pub(crate) struct Servers {
    next_index: u32,
    /// Living ones only: what is not here has ended.
    by_index: hashbrown::HashMap<u32, Arc<Record>, foldhash::fast::FixedState>,
    by_incarnation: HashMap<u64, Arc<Record>>,
    by_id: HashMap<Box<str>, Arc<Record>>,
    /// Id to the order in which it went.
    gone: HashMap<Box<str>, u64>,
    gone_count: u64,
    /// Newest incarnations that expired: their owner may not know (G7).
    expired: BTreeSet<u64>,
    active: Arc<[Arc<Server>]>,
}

impl Default for Servers {
    fn default() -> Self {
        Servers {
            next_index: 0,
            by_index: hashbrown::HashMap::default(),
            by_incarnation: HashMap::new(),
            by_id: HashMap::new(),
            gone: HashMap::new(),
            gone_count: 0,
            expired: BTreeSet::new(),
            active: Arc::from([]),
        }
    }
}

impl Servers {
    pub fn by_index(&self, index: u32) -> Option<&Arc<Record>> {
        self.by_index.get(&index)
    }

    pub fn by_incarnation(&self, incarnation: u64) -> Option<&Arc<Record>> {
        self.by_incarnation.get(&incarnation)
    }

    pub fn active(&self) -> Arc<[Arc<Server>]> {
        Arc::clone(&self.active)
    }

    pub fn len(&self) -> usize {
        self.by_index.len()
    }

    /// Attempts under way to living servers.
    pub fn in_flight(&self) -> u64 {
        self.by_index
            .values()
            .map(|record| u64::from(record.in_flight()))
            .sum()
    }

    pub fn by_id(&self, id: &str) -> ServerAnswer {
        match self.by_id.get(id) {
            Some(record) if record.draining.load(Ordering::Relaxed) => {
                ServerAnswer::Draining(Arc::clone(&record.server))
            }
            Some(record) => ServerAnswer::Active(Arc::clone(&record.server)),
            None if self.gone.contains_key(id) => ServerAnswer::Gone,
            None => ServerAnswer::Unknown,
        }
    }

    /// A server as the feed has it now. Of a known incarnation only the state can change (S7). An
    /// older one of the same id must have ended before, in the feed too.
    pub fn put(&mut self, server: Server, draining: bool) {
        if let Some(known) = self.by_incarnation.get(&server.incarnation) {
            known.draining.store(draining, Ordering::Relaxed);
            self.list_active();
            return;
        }
        // Never used again, so that an entry cannot come to mean another server.
        self.next_index += 1;
        let record = Arc::new(Record {
            index: self.next_index,
            draining: AtomicBool::new(draining),
            ended: AtomicBool::new(false),
            in_flight: AtomicU32::new(0),
            server: Arc::new(server),
        });
        self.gone.remove(&record.server.id);
        self.by_index.insert(record.index, Arc::clone(&record));
        self.by_incarnation
            .insert(record.server.incarnation, Arc::clone(&record));
        self.by_id.insert(record.server.id.clone(), record);
        self.list_active();
    }

    /// Ends an incarnation: every answer naming it is void from here on. `None` if it was not
    /// known.
    pub fn end(&mut self, id: &str, incarnation: u64) -> Option<Arc<Record>> {
        let record = self.by_incarnation.remove(&incarnation);
        if let Some(record) = &record {
            record.ended.store(true, Ordering::SeqCst);
            self.by_index.remove(&record.index);
            if self
                .by_id
                .get(id)
                .is_some_and(|known| known.server.incarnation == incarnation)
            {
                self.by_id.remove(id);
            }
            self.list_active();
        }
        if !self.by_id.contains_key(id) && !id.is_empty() {
            self.remember_gone(id);
        }
        record
    }

    /// The incarnation was not released: it may act without knowing better.
    pub fn set_expired(&mut self, incarnation: u64) {
        self.expired.insert(incarnation);
        if self.expired.len() > EXPIRED_MAX {
            self.expired.pop_first();
        }
    }

    pub fn is_expired(&self, incarnation: u64) -> bool {
        self.expired.contains(&incarnation)
    }

    /// Every incarnation that `keep` does not name ends (a snapshot replaced what was known). Gone
    /// ids are forgotten.
    pub fn end_all_but(&mut self, keep: impl Fn(u64) -> bool) -> Vec<Arc<Record>> {
        self.gone.clear();
        let ended: Vec<Arc<Record>> = self
            .by_index
            .values()
            .filter(|record| !keep(record.server.incarnation))
            .cloned()
            .collect();
        for record in &ended {
            record.ended.store(true, Ordering::SeqCst);
            self.by_index.remove(&record.index);
            self.by_incarnation.remove(&record.server.incarnation);
            self.by_id.remove(&record.server.id);
        }
        self.list_active();
        ended
    }

    fn remember_gone(&mut self, id: &str) {
        if self.gone.len() >= GONE_MAX {
            let oldest = self.gone_count.saturating_sub(GONE_MAX as u64 * 3 / 4);
            self.gone.retain(|_, order| *order > oldest);
        }
        self.gone_count += 1;
        self.gone.insert(id.into(), self.gone_count);
    }

    fn list_active(&mut self) {
        let active = |record: &&Arc<Record>| !record.draining.load(Ordering::Relaxed);
        let mut servers: Vec<Arc<Server>> = self
            .by_index
            .values()
            .filter(active)
            .map(|record| Arc::clone(&record.server))
            .collect();
        servers.sort_by_key(|server| server.incarnation);
        self.active = servers.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(id: &str, incarnation: u64) -> Server {
        Server {
            id: id.into(),
            incarnation,
            address: "127.0.0.1:1".into(),
            zone: "".into(),
        }
    }

    #[test]
    fn n1_an_id_is_active_draining_gone_or_unknown() {
        let mut servers = Servers::default();
        servers.put(server("a", 1), false);
        assert_eq!(
            servers.by_id("a"),
            ServerAnswer::Active(Arc::new(server("a", 1)))
        );
        servers.put(server("a", 1), true);
        assert_eq!(
            servers.by_id("a"),
            ServerAnswer::Draining(Arc::new(server("a", 1)))
        );
        assert!(servers.active().is_empty());
        assert!(servers.end("a", 1).is_some_and(|record| record.is_ended()));
        assert_eq!(servers.by_id("a"), ServerAnswer::Gone);
        assert_eq!(servers.by_id("b"), ServerAnswer::Unknown);
        servers.put(server("a", 2), false);
        assert_eq!(
            servers.by_id("a"),
            ServerAnswer::Active(Arc::new(server("a", 2)))
        );
    }

    #[test]
    fn m1_an_index_never_means_another_server() {
        let mut servers = Servers::default();
        servers.put(server("a", 1), false);
        let index = servers.by_incarnation(1).unwrap().index;
        servers.end("a", 1);
        servers.put(server("a", 2), false);
        assert!(servers.by_index(index).is_none());
        assert_ne!(servers.by_incarnation(2).unwrap().index, index);
    }

    #[test]
    fn gone_ids_are_bounded_and_the_newest_stay() {
        let mut servers = Servers::default();
        for n in 0..50_000u64 {
            servers.end(&format!("s{n}"), n);
        }
        assert!(servers.gone.len() <= GONE_MAX);
        assert_eq!(servers.by_id("s49999"), ServerAnswer::Gone);
        assert_eq!(servers.by_id("s0"), ServerAnswer::Unknown);
    }

    #[test]
    fn f1_a_snapshot_ends_what_it_does_not_name() {
        let mut servers = Servers::default();
        servers.put(server("a", 1), false);
        servers.put(server("b", 2), false);
        let ended = servers.end_all_but(|incarnation| incarnation == 2);
        assert_eq!(
            ended
                .iter()
                .map(|record| record.server.incarnation)
                .collect::<Vec<_>>(),
            [1]
        );
        assert_eq!(servers.active().len(), 1);
    }
}
