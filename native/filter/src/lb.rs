//! The LB policy `belay.lb`: picks the host of every attempt from the owner map.
//!
//! It never picks a server that is not the owner (R4, H15): what has no usable owner now goes to the
//! waiting room, the endpoint that leads back into this Envoy.

use crate::abi::{Hosts, PickContext};
use crate::headers::{Directions, number};
use crate::last_pick::{self, LastPick, ServerPick};
use crate::process::Known;
use crate::wait::{Cause, Wait};
use belay_keys::{Key, LbConfig};
use belay_owner::{Answer, Service};
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Addresses of endpoints that are internal listeners begin so.
const ROOM: &[u8] = b"envoy://";

/// What all workers' policies of one upstream cluster share.
pub struct LbSettings {
    known: Known,
}

impl LbSettings {
    #[must_use]
    pub fn new(config: LbConfig) -> Self {
        Self {
            known: Known::new(config.service),
        }
    }
}

/// One worker's policy of one upstream cluster.
pub struct LbPolicy {
    settings: Arc<LbSettings>,
    /// Names this instance to the owner map (A4).
    worker: u64,
    index: RefCell<Index>,
    /// Where the next keyless request begins its search.
    next: Cell<usize>,
}

#[derive(Default)]
struct Index {
    by_address: HashMap<Box<[u8]>, u32>,
    room: Option<u32>,
    reported: bool,
}

impl LbPolicy {
    #[must_use]
    pub fn new(settings: &Arc<LbSettings>, hosts: &Hosts) -> Self {
        static WORKERS: AtomicU64 = AtomicU64::new(1);
        let policy = Self {
            settings: Arc::clone(settings),
            worker: WORKERS.fetch_add(1, Relaxed),
            index: RefCell::default(),
            next: Cell::new(0),
        };
        policy.hosts_changed(hosts);
        policy
    }

    /// Membership or health changed: reads all hosts anew (0.2 ms for 1,000).
    pub fn hosts_changed(&self, hosts: &Hosts) {
        let mut index = self.index.borrow_mut();
        *index = Index::default();
        for at in 0..hosts.count() {
            let (Some(address), Ok(at)) = (hosts.address(at), u32::try_from(at)) else {
                continue;
            };
            if address.starts_with(ROOM) {
                index.room = Some(at);
            } else {
                index.by_address.insert(address.into(), at);
            }
        }
        self.report(&mut index);
    }

    /// A4: tells which hosts this worker can reach.
    fn report(&self, index: &mut Index) {
        if let Some(service) = self.settings.known.service() {
            let addresses: Vec<&str> = index
                .by_address
                .keys()
                .filter_map(|address| core::str::from_utf8(address).ok())
                .collect();
            service.hosts(self.worker, &addresses);
            index.reported = true;
        }
    }

    /// The index of the host for this attempt. `None`: 503, there is not even a waiting room.
    pub fn choose(&self, hosts: &Hosts, request: &PickContext) -> Option<u32> {
        let service = self.settings.known.service()?;
        if !self.index.borrow().reported {
            self.report(&mut self.index.borrow_mut());
        }
        match last_pick::take_found(service) {
            Some(found) => self.take(hosts, found),
            None => request.headers(|headers| self.look(hosts, service, &Directions::of(headers))),
        }
    }

    /// A further attempt, or a request whose owner the edge did not look for.
    fn look(&self, hosts: &Hosts, service: &Service, directions: &Directions) -> Option<u32> {
        let is_first = directions.attempt.is_none();
        if let Some(cause) = must_wait(directions) {
            return self.room(cause);
        }
        let (answer, key) = if let Some(key) = directions.key {
            match Key::parse_percent_encoded(key) {
                Ok(key) => (service.pick(key.as_bytes()), Some(key)),
                // The edge wrote the header, so this cannot be; the waiting room ends it.
                Err(_) => (Answer::Miss, None),
            }
        } else if let Some(incarnation) = directions.server.and_then(number) {
            (service.pick_server(incarnation), None)
        } else {
            return self.spread(hosts, service, is_first);
        };
        match answer {
            Answer::Owner(pick) => self.take(
                hosts,
                ServerPick {
                    pick,
                    key,
                    is_first,
                },
            ),
            Answer::Miss | Answer::Moving | Answer::Refused { .. } => self.room(Cause::Owner),
        }
    }

    fn take(&self, hosts: &Hosts, picked: ServerPick) -> Option<u32> {
        match self.find(hosts, picked.pick.server.address.as_bytes()) {
            Some(host) => {
                last_pick::put(LastPick::Server(picked));
                Some(host)
            }
            None => self.room(Cause::Host),
        }
    }

    fn room(&self, cause: Cause) -> Option<u32> {
        last_pick::put(LastPick::Room(cause));
        self.index.borrow().room
    }

    /// Without a key: the active servers in turn.
    fn spread(&self, hosts: &Hosts, service: &Service, is_first: bool) -> Option<u32> {
        let servers = service.active_servers();
        let first = self.next.get();
        self.next.set(first.wrapping_add(1));
        for turn in 0..servers.len() {
            let server = &servers[first.wrapping_add(turn) % servers.len()];
            let Some(host) = self.find(hosts, server.address.as_bytes()) else {
                continue;
            };
            if let Answer::Owner(pick) = service.pick_server(server.incarnation) {
                last_pick::put(LastPick::Server(ServerPick {
                    pick,
                    key: None,
                    is_first,
                }));
                return Some(host);
            }
        }
        self.room(if servers.is_empty() {
            Cause::Owner
        } else {
            Cause::Host
        })
    }

    /// Indexes shift without an event now and then, so the address decides.
    fn find(&self, hosts: &Hosts, address: &[u8]) -> Option<u32> {
        let at = *self.index.borrow().by_address.get(address)?;
        if hosts.address(usize::try_from(at).ok()?) == Some(address) {
            return Some(at);
        }
        self.hosts_changed(hosts);
        self.index.borrow().by_address.get(address).copied()
    }
}

impl Drop for LbPolicy {
    fn drop(&mut self) {
        if let Some(service) = self.settings.known.service() {
            service.hosts_gone(self.worker);
        }
    }
}

/// R1, R3: whether an earlier attempt of this request makes it wait before the next.
fn must_wait(directions: &Directions) -> Option<Cause> {
    directions.attempt?;
    match directions.wait.and_then(Wait::parse) {
        Some(wait) => wait.state.must_wait(),
        None => Some(Cause::Connect),
    }
}
