//! A request's headers: strip what clients may not say, find the key, look it up.

use super::{Edge, Phase, Route};
use crate::abi::{Headers, HeadersStatus, Map, Stream};
use crate::answer::{Reply, reason_of};
use crate::headers::{
    ClientView, KEY, Names, SERVER, is_stripped_from_clients, names_of, remove, strip,
};
use crate::last_pick;
use crate::metrics::Outcome;
use crate::process;
use belay_keys::{Extraction, Framing, Key, NoKey, PathBuffer, Reason};
use belay_owner::ServerAnswer;

/// What became of a request whose key or server is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Go,
    Hold,
    Answered,
}

impl Verdict {
    fn headers(self) -> HeadersStatus {
        match self {
            Self::Go => HeadersStatus::Continue,
            Self::Hold => HeadersStatus::StopAllAndWatermark,
            Self::Answered => HeadersStatus::StopIteration,
        }
    }
}

/// What a request's headers say.
struct Read {
    found: Extraction,
    /// The path without the key, if the route wants that.
    path: Option<PathBuffer>,
    /// Names that clients may not say.
    unwanted: Names,
    is_upgrade: bool,
    framing: Framing,
}

impl Read {
    fn of(headers: Headers<'_>, route: &Route) -> Self {
        let found = route.config.extract(&ClientView(headers));
        let path = match &found {
            Extraction::Key { strip, .. } | Extraction::Server { strip, .. } => *strip,
            _ => None,
        };
        Self {
            path: path.map(|strip| strip.apply(headers.get(":path", 0).unwrap_or_default())),
            found,
            unwanted: names_of(headers, is_stripped_from_clients),
            is_upgrade: headers.get("upgrade", 0).is_some(),
            framing: Framing::of_content_type(headers.get("content-type", 0).unwrap_or_default()),
        }
    }
}

impl Edge {
    pub(super) fn begin(&self, stream: &mut Stream, end: bool) -> HeadersStatus {
        last_pick::clear();
        let Some(route) = stream.route_config() else {
            strip(stream, Map::Request, is_stripped_from_clients);
            return HeadersStatus::Continue;
        };
        let route = self.route.get_or_init(|| route);
        let read = stream.headers(Map::Request, |headers| Read::of(headers, route));
        // P4: nothing of it was read.
        remove(stream, Map::Request, &read.unwanted);
        if process::get().is_none() {
            self.reply(stream, Reply::of(Reason::NoSnapshot));
            return HeadersStatus::StopIteration;
        }
        if let Some(path) = &read.path {
            stream.set_header(Map::Request, ":path", path);
        }
        match read.found {
            Extraction::Key { key, .. } => self.with_key(stream, route, key).headers(),
            Extraction::Server { id, .. } => self.with_server(stream, route, &id).headers(),
            // The bytes of an upgraded connection are no body.
            Extraction::NeedBody if !end && !read.is_upgrade => {
                self.search_body(stream, route, read.framing)
            }
            Extraction::NeedBody | Extraction::None => self.without_key(stream, route).headers(),
            Extraction::Error(reason) => {
                self.reply(stream, Reply::of(reason));
                HeadersStatus::StopIteration
            }
        }
    }

    /// Names the key to the LB policy and the server, and looks for its owner.
    pub(super) fn with_key(&self, stream: &mut Stream, route: &Route, key: Key) -> Verdict {
        // Stripped before, so it is not there yet.
        stream.add_header(Map::Request, KEY, &key.to_header_value());
        let deadline = process::now_ms() + u64::from(route.config.park_ms);
        self.deadline_ms.set(deadline);
        let verdict = self.look(stream, route, &key);
        if verdict == Verdict::Go {
            self.count(Outcome::Hit, "hit");
        }
        self.key.replace(Some(key));
        verdict
    }

    fn with_server(&self, stream: &mut Stream, route: &Route, id: &Key) -> Verdict {
        let Some(service) = route.known.service() else {
            return self.refuse(stream, Reason::NoSnapshot);
        };
        match service.server(id.as_str()) {
            ServerAnswer::Active(server) | ServerAnswer::Draining(server) => {
                let mut digits = itoa::Buffer::new();
                let incarnation = digits.format(server.incarnation).as_bytes();
                stream.add_header(Map::Request, SERVER, incarnation);
                self.count(Outcome::Server, "server");
                Verdict::Go
            }
            ServerAnswer::Gone => self.refuse(stream, Reason::ServerGone),
            ServerAnswer::Unknown => self.refuse(stream, Reason::ServerUnknown),
            ServerAnswer::Refused(refusal) => self.refuse(stream, reason_of(refusal)),
        }
    }

    /// No place gave a key.
    pub(super) fn without_key(&self, stream: &mut Stream, route: &Route) -> Verdict {
        if route.config.is_keyed() && route.config.no_key == NoKey::Refuse {
            return self.refuse(stream, Reason::NoKey);
        }
        if route
            .config
            .minted
            .as_ref()
            .is_some_and(|minted| minted.reader().is_some())
        {
            // A compressed answer would hide the key.
            stream.remove_header(Map::Request, b"accept-encoding");
        }
        self.count(Outcome::NoKey, "no_key");
        Verdict::Go
    }

    pub(super) fn refuse(&self, stream: &mut Stream, reason: Reason) -> Verdict {
        self.reply(stream, Reply::of(reason));
        Verdict::Answered
    }

    fn search_body(&self, stream: &mut Stream, route: &Route, framing: Framing) -> HeadersStatus {
        match route.config.envelope_scanner(framing) {
            Some(scanner) => {
                self.scanner.replace(Some(Box::new(scanner)));
                self.phase.set(Phase::Searching);
                HeadersStatus::StopIteration
            }
            None => self.without_key(stream, route).headers(),
        }
    }
}
