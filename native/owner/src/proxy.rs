//! The process-wide handle that the data plane talks to.

use std::sync::Arc;

use crate::answer::{AfterRefusal, Answer, Opened, Parked, Server, ServerAnswer, ServerRefusal, StreamKind};
use crate::config::ProxyConfig;
use crate::stats::Stats;
use crate::waker::{StreamId, Waker};

/// The proxy's half of the ownership protocol. Cheap to clone; all clones are the same proxy.
#[derive(Clone)]
pub struct Proxy;

/// One service of a `Proxy`, so that a request need not find it by name. Cheap to clone, valid for ever:
/// while the coordinator does not define the service, answers are `service-unknown`.
#[derive(Clone)]
pub struct Service;

#[allow(unused_variables, clippy::unused_self)]
impl Proxy {
    /// Starts the feed thread. Fails when the thread or its poller cannot be made.
    pub fn start(config: ProxyConfig, waker: Arc<dyn Waker>) -> std::io::Result<Proxy> {
        todo!()
    }
    /// Says Goodbye if no stream is open (P7), ends the thread and joins it. Idempotent.
    pub fn stop(&self) {
        todo!()
    }
    /// The service of that name; made when new, so only call it with names from configuration.
    pub fn service(&self, name: &str) -> Service {
        todo!()
    }
    /// A stream left its parking (client gone, time over). No event comes after it returned, except one already on its way.
    pub fn unpark(&self, stream: StreamId) {
        todo!()
    }
    /// The stream has ended; forgets what `open` registered. Harmless for an unknown one.
    pub fn close(&self, stream: StreamId) {
        todo!()
    }
    pub fn stats(&self) -> Stats {
        todo!()
    }
}

#[allow(unused_variables, clippy::unused_self)]
impl Service {
    pub fn name(&self) -> &str {
        todo!()
    }
    /// As the feed says; `false` while the service is unknown.
    pub fn is_guarded(&self) -> bool {
        todo!()
    }
    /// For the filter, before routing. Nothing is counted.
    pub fn lookup(&self, key: &[u8]) -> Answer {
        todo!()
    }
    /// For the LB policy, at every attempt. For an unguarded service the pick is counted until its token is dropped.
    pub fn pick(&self, key: &[u8]) -> Answer {
        todo!()
    }
    /// Picks by incarnation (server ids, keyless spreading): `Owner` with epoch 0, or `Refused` with `ServerGone`.
    pub fn pick_server(&self, incarnation: u64) -> Answer {
        todo!()
    }
    /// What is known of a server id.
    pub fn server(&self, server_id: &str) -> ServerAnswer {
        todo!()
    }
    /// Active servers in order of incarnation, for keyless spreading; empty when nothing may be believed.
    /// Count the chosen one with `pick_server`.
    pub fn active_servers(&self) -> Arc<[Arc<Server>]> {
        todo!()
    }
    /// Holds a stream until the key has an answer, for at most `wait_ms` (after which a `Deadline` event comes).
    pub fn park(&self, key: &[u8], stream: StreamId, wait_ms: u64) -> Parked {
        todo!()
    }
    /// A server refused an attempt (R1). Counting tries (R2) is the caller's.
    pub fn refused(&self, key: &[u8], refusal: ServerRefusal) -> AfterRefusal {
        todo!()
    }
    /// Claims a minted key (A7); a `Minted` event always comes, at the latest after `wait_ms`. `false`: too many claims
    /// wait, no event comes, answer 503 `mint-unconfirmed`.
    #[must_use]
    pub fn mint(&self, key: &[u8], incarnation: u64, stream: StreamId, wait_ms: u64) -> bool {
        todo!()
    }
    /// Registers a stream on the pick (`epoch`, `incarnation`) so that it hears `CloseMoved` and `Reset`, and keeps its
    /// key from idling out (A5). Needed for WebSockets and long streams of any service, and for *every* stream of an
    /// unguarded one, called right after `pick` (P1). Without a key: `key` empty, `epoch` 0. Opening again replaces.
    pub fn open(&self, key: &[u8], epoch: u64, incarnation: u64, stream: StreamId, kind: StreamKind) -> Opened {
        todo!()
    }
    /// The hosts that one worker's LB policy holds now (A4). Reported to the coordinator when all workers agree.
    pub fn hosts(&self, worker: u64, addresses: &[&str]) {
        todo!()
    }
    /// That LB policy is gone (its upstream cluster was replaced or the worker ends).
    pub fn hosts_gone(&self, worker: u64) {
        todo!()
    }
}
