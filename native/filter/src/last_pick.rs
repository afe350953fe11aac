//! What one turn of a worker hands from hook to hook: the edge's find to the LB policy, the LB policy's
//! pick to the attempt's filter.
//!
//! When the edge lets a request go on, the router picks a host and runs the attempt's filter chain in
//! the same turn, so a worker-local slot for each is enough. What nobody took is dropped by the next
//! hook that begins a turn: of a request, an answer, or the end of a stream.

use crate::wait::Cause;
use belay_keys::Key;
use belay_owner::{Pick, Service};
use std::cell::RefCell;

/// What was picked.
pub enum LastPick {
    Server(ServerPick),
    Room(Cause),
}

/// A server, and what the LB policy read of the request: the filter need not look it up again.
pub struct ServerPick {
    pub pick: Pick,
    pub key: Option<Key>,
    /// No attempt was made before.
    pub is_first: bool,
}

/// The owner that the edge found for a request's first attempt.
struct Found {
    service: u32,
    pick: ServerPick,
}

thread_local! {
    static FOUND: RefCell<Option<Found>> = const { RefCell::new(None) };
    static LAST: RefCell<Option<LastPick>> = const { RefCell::new(None) };
}

/// To be called last in a turn before the request goes on to the router.
pub fn find(service: &Service, key: Key, pick: Pick) {
    let pick = ServerPick {
        pick,
        key: Some(key),
        is_first: true,
    };
    let service = service.number();
    FOUND.with(|found| found.replace(Some(Found { service, pick })));
}

/// What was found in this turn, if it was for this service.
#[must_use]
pub fn take_found(service: &Service) -> Option<ServerPick> {
    let found = FOUND.with(RefCell::take)?;
    (found.service == service.number()).then_some(found.pick)
}

pub fn put(pick: LastPick) {
    LAST.with(|last| last.replace(Some(pick)));
}

#[must_use]
pub fn take() -> Option<LastPick> {
    LAST.with(RefCell::take)
}

/// A new turn begins: drops what no pick and no attempt took, and with it its count in flight.
pub fn clear() {
    drop(FOUND.with(RefCell::take));
    drop(take());
}
