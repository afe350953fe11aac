//! The downstream filter `belay.edge`, one for each request of a client.
//!
//! | phase | in |
//! | --- | --- |
//! | headers: strip, find the key or the server id | [`request`] |
//! | body: the envelope | [`body`] |
//! | held until the key has an owner | [`hold`] |
//! | the answer: refusals that ended, Envoy's own answers, access log | [`reply`] |
//! | the answer that carries a minted key | [`mint`] |
//! | an accepted WebSocket | [`websocket`] |

mod body;
mod hold;
mod mint;
mod reply;
mod request;
mod websocket;

use crate::abi::{BodyStatus, HeadersStatus, HttpFilter, Map, Stream, TrailersStatus};
use crate::answer::Reply;
use crate::headers::{is_stripped_from_clients, strip};
use crate::last_pick;
use crate::metrics::Outcome;
use crate::process::{self, Known, Process};
use crate::wakers::{Event, Wakeable};
use belay_keys::{EdgeConfig, EnvelopeScanner, Key, MintReader, Reason, RouteConfig};
use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;
use websocket::Socket;

/// What all streams of one connection manager share.
pub struct EdgeSettings {
    config: EdgeConfig,
}

impl EdgeSettings {
    #[must_use]
    pub fn new(config: EdgeConfig) -> Self {
        Self { config }
    }
}

/// A route of a service.
pub struct Route {
    config: RouteConfig,
    known: Known,
}

impl Route {
    #[must_use]
    pub fn new(config: RouteConfig) -> Self {
        let known = Known::new(config.service.clone());
        Self { config, known }
    }
}

/// Where a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing to do for us but to watch.
    Passing,
    /// Reading the body for its envelope.
    Searching,
    /// The request waits for an owner.
    Held,
    /// Reading the answer's body for a minted key.
    Reading,
    /// The answer waits until its minted key is confirmed.
    Claiming,
    /// Belay answered.
    Answered,
}

pub struct Edge {
    settings: Arc<EdgeSettings>,
    route: OnceCell<Arc<Route>>,
    phase: Cell<Phase>,
    key: RefCell<Option<Key>>,
    scanner: RefCell<Option<Box<EnvelopeScanner>>>,
    reader: RefCell<Option<Box<MintReader>>>,
    socket: RefCell<Option<Box<Socket>>>,
    /// While something may wake this stream.
    wakeable: RefCell<Option<Wakeable>>,
    /// When a held request is given up, on the process's clock.
    deadline_ms: Cell<u64>,
    /// Bytes of the request's body that have passed.
    body_bytes: Cell<u64>,
    /// The reason behind an answer that Envoy is about to give.
    local_reply: Cell<Option<Reason>>,
    /// For the access log.
    outcome: Cell<&'static str>,
}

impl Edge {
    #[must_use]
    pub fn new(settings: Arc<EdgeSettings>) -> Self {
        Self {
            settings,
            route: OnceCell::new(),
            phase: Cell::new(Phase::Passing),
            key: RefCell::new(None),
            scanner: RefCell::new(None),
            reader: RefCell::new(None),
            socket: RefCell::new(None),
            wakeable: RefCell::new(None),
            deadline_ms: Cell::new(0),
            body_bytes: Cell::new(0),
            local_reply: Cell::new(None),
            outcome: Cell::new(""),
        }
    }

    /// Nothing wakes this stream any more.
    fn forget_wakeable(&self) {
        if let (Some(wakeable), Some(process)) = (self.wakeable.take(), process::get()) {
            process.proxy.unpark(wakeable.id);
            process.proxy.close(wakeable.id);
        }
    }

    /// The id by which this stream is woken.
    fn wake_id(&self, stream: &mut Stream, process: &Process) -> belay_owner::StreamId {
        self.wakeable
            .borrow_mut()
            .get_or_insert_with(|| process.wakers.register(stream))
            .id
    }

    /// Answers instead of a server.
    fn reply(&self, stream: &mut Stream, reply: Reply) {
        self.answered(reply.reason);
        self.phase.set(Phase::Answered);
        self.log(stream);
        reply.send(stream);
    }

    fn answered(&self, reason: Reason) {
        self.outcome.set(reason.code());
        if let Some(metrics) = self.route.get().and_then(|route| route.known.metrics()) {
            metrics.answered(reason);
        }
    }

    fn count(&self, outcome: Outcome, name: &'static str) {
        self.outcome.set(name);
        if let Some(metrics) = self.route.get().and_then(|route| route.known.metrics()) {
            metrics.count(outcome);
        }
    }
}

impl HttpFilter for Edge {
    fn request_headers(&self, stream: &mut Stream, end: bool) -> HeadersStatus {
        self.begin(stream, end)
    }

    fn request_body(&self, stream: &mut Stream, end: bool) -> BodyStatus {
        self.watch_body(stream, end)
    }

    fn request_trailers(&self, stream: &mut Stream) -> TrailersStatus {
        strip(stream, Map::RequestTrailers, is_stripped_from_clients);
        match self.phase.get() {
            Phase::Searching => self.body_ended(stream),
            Phase::Held | Phase::Answered => TrailersStatus::StopIteration,
            _ => TrailersStatus::Continue,
        }
    }

    fn response_headers(&self, stream: &mut Stream, end: bool) -> HeadersStatus {
        self.answer(stream, end)
    }

    fn response_body(&self, stream: &mut Stream, end: bool) -> BodyStatus {
        match self.phase.get() {
            Phase::Reading => self.read_minted(stream, end),
            Phase::Claiming => BodyStatus::StopAndWatermark,
            _ if self.socket.borrow().is_some() => self.socket_data(stream),
            _ => BodyStatus::Continue,
        }
    }

    fn response_trailers(&self, stream: &mut Stream) -> TrailersStatus {
        match self.phase.get() {
            Phase::Reading => self.reading_ended(stream),
            Phase::Claiming => TrailersStatus::StopIteration,
            _ => TrailersStatus::Continue,
        }
    }

    fn scheduled(&self, stream: &mut Stream, event: u64) {
        match (self.phase.get(), Event::decode(event)) {
            (Phase::Held, Some(Event::Answer)) => self.look_again(stream),
            (Phase::Held, Some(Event::Deadline(reason))) => {
                self.forget_wakeable();
                self.reply(stream, Reply::of(reason));
            }
            (Phase::Claiming, Some(Event::Minted(claim))) => self.claimed(stream, claim),
            (Phase::Passing, Some(event)) => self.socket_event(stream, event),
            _ => {}
        }
    }

    fn stream_complete(&self, _stream: &mut Stream) {
        self.forget_wakeable();
        last_pick::clear();
    }

    fn local_reply(&self, details: &[u8]) {
        self.envoy_answers(details);
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        self.forget_wakeable();
    }
}
