//! What stands behind each name in Envoy's configuration.

use crate::abi::{BodyStatus, HeadersStatus, HttpFilter, Level, Stream, TrailersStatus, log};
use crate::answer::Reply;
use crate::attempt::{Attempt, AttemptSettings};
use crate::edge::{Edge, EdgeSettings, Route};
use crate::lb::LbSettings;
use crate::room::Room;
use belay_keys::{AttemptConfig, EdgeConfig, Reason};
use core::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub use crate::bootstrap::Extension;
pub use crate::lb::LbPolicy;

pub type RouteConfig = Arc<Route>;
pub type LbConfig = Arc<LbSettings>;

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Panics caught so far.
#[must_use]
pub fn panics() -> u64 {
    PANICS.load(Relaxed)
}

pub fn program_init() {
    std::panic::set_hook(Box::new(|panic| {
        log(Level::Error, &format!("belay: {panic}"));
    }));
}

/// A panic was caught in a hook; the message is in the log already.
pub fn panicked(hook: &str) {
    PANICS.fetch_add(1, Relaxed);
    log(
        Level::Error,
        &format!("belay: the panic was caught in {hook}; please report it"),
    );
}

/// Answers the request whose hook panicked.
pub fn answer_panic(stream: &mut Stream) {
    Reply::of(Reason::Internal).send(stream);
}

/// Envoy says only «Failed to initialize dynamic module», so the reason goes to the log.
fn refuse<T>(what: &str, problem: &impl Display) -> Option<T> {
    log(
        Level::Error,
        &format!("belay: configuration of {what}: {problem}"),
    );
    None
}

/// Configuration of an HTTP filter.
pub enum FilterConfig {
    Edge(Arc<EdgeSettings>),
    Attempt(Arc<AttemptSettings>),
    Room,
}

#[must_use]
pub fn filter_config(name: &str, config: &str) -> Option<FilterConfig> {
    match name {
        "belay.edge" => match EdgeConfig::parse(config.as_bytes()) {
            Ok(config) => Some(FilterConfig::Edge(Arc::new(EdgeSettings::new(config)))),
            Err(problem) => refuse(name, &problem),
        },
        "belay.attempt" => match AttemptConfig::parse(config.as_bytes()) {
            Ok(config) => Some(FilterConfig::Attempt(Arc::new(AttemptSettings::new(
                config,
            )))),
            Err(problem) => refuse(name, &problem),
        },
        "belay.room" => Some(FilterConfig::Room),
        _ => refuse(
            name,
            &"filter_name must be belay.edge, belay.attempt or belay.room",
        ),
    }
}

#[must_use]
pub fn route_config(name: &str, config: &str) -> Option<RouteConfig> {
    match belay_keys::RouteConfig::parse(config.as_bytes()) {
        Ok(config) => Some(Arc::new(Route::new(config))),
        Err(problem) => refuse(&format!("a route of {name}"), &problem),
    }
}

#[must_use]
pub fn lb_config(name: &str, config: &str) -> Option<LbConfig> {
    match belay_keys::LbConfig::parse(config.as_bytes()) {
        Ok(config) => Some(Arc::new(LbSettings::new(config))),
        Err(problem) => refuse(name, &problem),
    }
}

impl FilterConfig {
    #[must_use]
    pub fn filter(&self) -> Filter {
        match self {
            Self::Edge(settings) => Filter::Edge(Edge::new(Arc::clone(settings))),
            Self::Attempt(settings) => Filter::Attempt(Attempt::new(Arc::clone(settings))),
            Self::Room => Filter::Room(Room::default()),
        }
    }
}

/// One stream's HTTP filter.
pub enum Filter {
    Edge(Edge),
    Attempt(Attempt),
    Room(Room),
}

macro_rules! each {
    ($self:ident, $filter:ident => $call:expr) => {
        match $self {
            Self::Edge($filter) => $call,
            Self::Attempt($filter) => $call,
            Self::Room($filter) => $call,
        }
    };
}

impl HttpFilter for Filter {
    fn request_headers(&self, stream: &mut Stream, end: bool) -> HeadersStatus {
        each!(self, filter => filter.request_headers(stream, end))
    }

    fn request_body(&self, stream: &mut Stream, end: bool) -> BodyStatus {
        each!(self, filter => filter.request_body(stream, end))
    }

    fn request_trailers(&self, stream: &mut Stream) -> TrailersStatus {
        each!(self, filter => filter.request_trailers(stream))
    }

    fn response_headers(&self, stream: &mut Stream, end: bool) -> HeadersStatus {
        each!(self, filter => filter.response_headers(stream, end))
    }

    fn response_body(&self, stream: &mut Stream, end: bool) -> BodyStatus {
        each!(self, filter => filter.response_body(stream, end))
    }

    fn response_trailers(&self, stream: &mut Stream) -> TrailersStatus {
        each!(self, filter => filter.response_trailers(stream))
    }

    fn scheduled(&self, stream: &mut Stream, event: u64) {
        each!(self, filter => filter.scheduled(stream, event));
    }

    fn stream_complete(&self, stream: &mut Stream) {
        each!(self, filter => filter.stream_complete(stream));
    }

    fn local_reply(&self, details: &[u8]) {
        each!(self, filter => filter.local_reply(details));
    }
}
