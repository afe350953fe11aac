//! The proxy's half of Belay's ownership protocol, independent of Envoy.
//!
//! `Proxy` holds the owner map that every worker reads, and the feed thread that keeps it true. The
//! rule ids in comments (S2, P1, M4 …) are those of `packages/ownership/SPEC.md`.
#![forbid(unsafe_code)]
// Errors are told in the first paragraph; WebSocket and the like are words, not code.
#![allow(clippy::missing_errors_doc, clippy::doc_markdown)]

mod answer;
mod back_off;
mod clock;
mod config;
mod connection;
mod counters;
mod entry;
mod hosts;
mod in_flight;
mod link;
mod machine;
mod parking;
mod part;
mod process_state;
mod proxy;
mod servers;
mod service;
mod service_state;
mod services;
mod shard;
mod shard_map;
mod signal;
mod stats;
mod streams;
mod waker;

pub use answer::{
    AfterRefusal, Answer, Opened, Parked, Pick, Refusal, Server, ServerAnswer, ServerRefusal,
    StreamKind,
};
pub use config::{Limits, ProxyConfig};
pub use in_flight::InFlight;
pub use proxy::Proxy;
pub use service::Service;
pub use stats::{RESOLVE_BUCKETS_MS, Stats};
pub use waker::{Level, MintResult, StreamEvent, StreamId, Waker};
