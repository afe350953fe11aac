//! Names of headers, and reading them.

use crate::abi::{Map, PickContext, Stream};
use belay_keys::extract::HeaderView;

pub const KEY: &str = "x-belay-key";
pub const EPOCH: &str = "x-belay-epoch";
pub const INCARNATION: &str = "x-belay-incarnation";
pub const ATTEMPT: &str = "x-belay-attempt";
pub const REFUSED: &str = "x-belay-refused";
pub const REASON: &str = "x-belay-reason";
/// Internal: the incarnation that a `{server}` path names.
pub const SERVER: &str = "x-belay-server";
/// Internal: what became of the attempts so far (`crate::wait`), only after one has failed.
pub const WAIT: &str = "x-belay-wait";
pub const STATUS: &str = ":status";

/// P4: never believed from clients.
#[must_use]
pub fn is_stripped_from_clients(name: &[u8]) -> bool {
    name.starts_with(b"x-belay-") || name.starts_with(b"x-envoy-")
}

/// P4: never passed on from applications.
#[must_use]
pub fn is_ours(name: &[u8]) -> bool {
    name.starts_with(b"x-belay-")
}

/// A decimal number, as our own headers carry it.
#[must_use]
pub fn number(value: &[u8]) -> Option<u64> {
    core::str::from_utf8(value).ok()?.parse().ok()
}

/// One header map of a stream, as the key search sees it.
pub struct View<'s> {
    pub stream: &'s Stream,
    pub map: Map,
}

impl HeaderView for View<'_> {
    fn header(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.stream.header_at(self.map, name, index)
    }
}

/// Request headers, as the stream's filters and the LB policy both can read them.
pub trait RequestHeaders {
    fn request_header(&self, name: &str) -> Option<&[u8]>;

    fn request_number(&self, name: &str) -> Option<u64> {
        self.request_header(name).and_then(number)
    }
}

impl RequestHeaders for Stream {
    fn request_header(&self, name: &str) -> Option<&[u8]> {
        self.header(Map::Request, name)
    }
}

impl RequestHeaders for PickContext {
    fn request_header(&self, name: &str) -> Option<&[u8]> {
        self.header(name)
    }
}

/// Whether the request is gRPC: its answers need a `grpc-status`.
#[must_use]
pub fn is_grpc(stream: &Stream) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    stream
        .header(Map::Request, "content-type")
        .and_then(|value| value.get(..GRPC.len()))
        .is_some_and(|start| start.eq_ignore_ascii_case(GRPC))
}

/// Removes the headers of a map whose names satisfy `unwanted`.
pub fn strip(stream: &mut Stream, map: Map, unwanted: impl Fn(&[u8]) -> bool) {
    for name in stream.names(map, unwanted) {
        stream.remove_header(map, &name);
    }
}
