//! Hands the LB policy's pick to the attempt's filter.
//!
//! The router picks a host and runs the attempt's filter chain in one turn of the worker, so a
//! worker-local slot is enough; what an attempt that never started left in it is dropped by the next
//! pick or at the end of a stream.

use crate::wait::Cause;
use belay_keys::Key;
use belay_owner::Pick;
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

thread_local! {
    static LAST: RefCell<Option<LastPick>> = const { RefCell::new(None) };
}

pub fn put(pick: LastPick) {
    LAST.with(|last| last.replace(Some(pick)));
}

#[must_use]
pub fn take() -> Option<LastPick> {
    LAST.with(RefCell::take)
}

/// Drops a pick that no attempt took, and with it its count in flight.
pub fn clear() {
    drop(take());
}
