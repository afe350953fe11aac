//! Names of headers, and reading them.

use crate::abi::{Headers, Map, Stream};
use crate::wait::RefusalHeader;
use belay_keys::extract::HeaderView;
use smallvec::SmallVec;

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
    has_prefix(name, b"x-belay-") || has_prefix(name, b"x-envoy-")
}

/// P4: never passed on from applications.
#[must_use]
pub fn is_ours(name: &[u8]) -> bool {
    has_prefix(name, b"x-belay-")
}

/// CGI, WSGI and their kin read `_` in a header's name as `-`, so here it counts as such.
fn has_prefix(name: &[u8], prefix: &[u8]) -> bool {
    name.len() >= prefix.len()
        && name
            .iter()
            .zip(prefix)
            .all(|(byte, wanted)| byte == wanted || (*byte == b'_' && *wanted == b'-'))
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

/// A client's headers as the key search sees them: without what clients may not say (P4).
pub struct ClientView<'h>(pub Headers<'h>);

impl HeaderView for ClientView<'_> {
    fn header(&self, name: &str, index: usize) -> Option<&[u8]> {
        if is_stripped_from_clients(name.as_bytes()) {
            return None;
        }
        self.0.get(name, index)
    }
}

/// What Belay wrote on a request.
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

/// What decides where an attempt goes, as Belay wrote it on the request.
#[derive(Default)]
pub struct Directions<'r> {
    pub key: Option<&'r [u8]>,
    pub server: Option<&'r [u8]>,
    pub attempt: Option<&'r [u8]>,
    pub wait: Option<&'r [u8]>,
}

impl<'r> Directions<'r> {
    #[must_use]
    pub fn of(request: Headers<'r>) -> Self {
        let mut found = Self::default();
        for (name, value) in request.iter().filter(|(name, _)| is_ours(name)) {
            let place = match core::str::from_utf8(name) {
                Ok(KEY) => &mut found.key,
                Ok(SERVER) => &mut found.server,
                Ok(ATTEMPT) => &mut found.attempt,
                Ok(WAIT) => &mut found.wait,
                _ => continue,
            };
            *place = Some(value);
        }
        found
    }
}

/// What Belay reads of a server's answer.
#[derive(Default)]
pub struct Answered {
    /// There is an `x-belay-refused`.
    pub is_refused: bool,
    /// Its value, if it can be read.
    pub refusal: Option<RefusalHeader>,
    pub epoch: Option<u64>,
    /// Some header is one of ours.
    pub has_ours: bool,
    /// A WebSocket was accepted.
    pub is_upgrade: bool,
}

impl Answered {
    #[must_use]
    pub fn of(stream: &Stream) -> Self {
        let mut found = Self::default();
        stream.headers(Map::Response, |headers| {
            for (name, value) in headers.iter() {
                if is_ours(name) {
                    found.has_ours = true;
                    match core::str::from_utf8(name) {
                        Ok(REFUSED) => {
                            found.is_refused = true;
                            found.refusal = RefusalHeader::parse(value);
                        }
                        Ok(EPOCH) => found.epoch = number(value),
                        _ => {}
                    }
                } else if name == STATUS.as_bytes() {
                    found.is_upgrade = value == b"101";
                }
            }
        });
        found
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
    let names = stream.headers(map, |headers| names_of(headers, unwanted));
    remove(stream, map, &names);
}

/// Names of headers. Envoy itself adds one to most requests that is then removed, so usual ones take no allocation.
pub type Names = SmallVec<[SmallVec<[u8; 32]>; 2]>;

/// The names that satisfy `unwanted`.
pub fn names_of(headers: Headers<'_>, unwanted: impl Fn(&[u8]) -> bool) -> Names {
    let names = headers.iter().map(|(name, _)| name);
    let unwanted = names.filter(|name| unwanted(name));
    unwanted.map(SmallVec::from_slice).collect()
}

/// Removes the headers of these names.
pub fn remove(stream: &mut Stream, map: Map, names: &Names) {
    for name in names {
        stream.remove_header(map, name);
    }
}
