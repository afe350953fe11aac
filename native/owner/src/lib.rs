//! The proxy's half of Belay's ownership protocol, independent of Envoy.
//!
//! `Proxy` holds the owner map that every worker reads, and the feed thread that keeps it true. The rule ids in
//! comments (S2, P1, M4 …) are those of `packages/ownership/SPEC.md`.
#![forbid(unsafe_code)]

mod answer;
mod config;
mod in_flight;
mod proxy;
mod stats;
mod waker;

pub use answer::{
    AfterRefusal, Answer, Opened, Parked, Pick, Refusal, Server, ServerAnswer, ServerRefusal, StreamKind,
};
pub use config::{Limits, ProxyConfig};
pub use in_flight::InFlight;
pub use proxy::{Proxy, Service};
pub use stats::{RESOLVE_BUCKETS_MS, Stats};
pub use waker::{Level, MintResult, StreamEvent, StreamId, Waker};
