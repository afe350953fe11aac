//! Finds the key of a request in the places of its route.
//!
//! - All places but the body are compared: two different values are `key-conflict`. The body is read
//!   only if none of them gave a key.
//! - Of several path templates the first that matches counts, likewise of host templates.
//! - An empty value is an absent one. Equal values may be repeated (header, cookie, query).
//! - Path and query are percent-decoded once; headers and cookies stand for themselves.
//! - A path template with `{server}` names a server outright: then no key is looked for. What cannot
//!   be a server id was never registered: `server-unknown`.

use crate::config::{Place, RouteConfig};
use crate::key::{Key, KeyProblem, hex_value, is_server_id};
use crate::path::{Names, Strip};
use crate::reason::Reason;

/// The headers of a request or an answer, borrowed.
pub trait HeaderView {
    /// The value number `index` (from 0) of the header `name` (lower case; `:path` and `:authority`
    /// too); `None` past the last one.
    fn header(&self, name: &str, index: usize) -> Option<&[u8]>;
}

/// What the places of a route gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extraction {
    Key {
        key: Key,
        strip: Option<Strip>,
    },
    /// An id that may be a registered server's; the owner map knows.
    Server {
        id: Key,
        strip: Option<Strip>,
    },
    /// The route has an envelope: feed the body to [`RouteConfig::envelope_scanner`].
    NeedBody,
    /// No key: [`RouteConfig::no_key`] says what happens.
    None,
    Error(Reason),
}

impl RouteConfig {
    /// Looks at the headers. Allocates only for keys longer than
    /// [`KEY_INLINE_BYTES`](crate::KEY_INLINE_BYTES).
    #[must_use]
    pub fn extract(&self, request: &impl HeaderView) -> Extraction {
        match self.search(request) {
            Ok(extraction) => extraction,
            Err(reason) => Extraction::Error(reason),
        }
    }

    fn search(&self, request: &impl HeaderView) -> Result<Extraction, Reason> {
        let mut found = Found::default();
        let mut strip = None;
        let (mut path_matched, mut host_matched) = (false, false);
        let path = request.header(":path", 0).unwrap_or_default();
        for place in &self.places {
            match place {
                Place::Path { .. } if path_matched => {}
                Place::Path {
                    template,
                    strip: stripped,
                } => {
                    let Some(hit) = template.find(path) else {
                        continue;
                    };
                    path_matched = true;
                    strip = stripped.then_some(hit.strip);
                    if template.names == Names::Server {
                        return server(hit.key(), strip);
                    }
                    found.add(hit.key())?;
                }
                Place::Header(name) => {
                    let mut index = 0;
                    while let Some(value) = request.header(name, index) {
                        found.add_raw(value)?;
                        index += 1;
                    }
                }
                Place::Cookie(name) => {
                    let mut index = 0;
                    while let Some(header) = request.header("cookie", index) {
                        for value in cookies(header, name.as_bytes()) {
                            found.add_raw(value)?;
                        }
                        index += 1;
                    }
                }
                Place::Query(name) => {
                    for value in query_values(path, name.as_bytes()) {
                        if !value.is_empty() {
                            found.add(Key::parse_percent_encoded(value))?;
                        }
                    }
                }
                Place::Host(_) if host_matched => {}
                Place::Host(template) => {
                    let authority = request.header(":authority", 0).unwrap_or_default();
                    if let Some(key) = template.find(authority) {
                        host_matched = true;
                        found.add(key)?;
                    }
                }
            }
        }
        Ok(match (found.key, &self.envelope) {
            (Some(key), _) => Extraction::Key { key, strip },
            (None, Some(_)) => Extraction::NeedBody,
            (None, None) => Extraction::None,
        })
    }
}

fn server(id: Result<Key, KeyProblem>, strip: Option<Strip>) -> Result<Extraction, Reason> {
    match id {
        Ok(id) if is_server_id(id.as_bytes()) => Ok(Extraction::Server { id, strip }),
        _ => Err(Reason::ServerUnknown),
    }
}

/// The one key of a request, so far.
#[derive(Default)]
struct Found {
    key: Option<Key>,
}

impl Found {
    fn add(&mut self, key: Result<Key, KeyProblem>) -> Result<(), Reason> {
        let key = key.map_err(|_| Reason::BadKey)?;
        match &self.key {
            Some(first) if *first != key => Err(Reason::KeyConflict),
            Some(_) => Ok(()),
            None => {
                self.key = Some(key);
                Ok(())
            }
        }
    }

    fn add_raw(&mut self, value: &[u8]) -> Result<(), Reason> {
        let value = value.trim_ascii();
        if value.is_empty() {
            Ok(())
        } else {
            self.add(Key::parse(value))
        }
    }
}

/// The values of one cookie in a `cookie` header (RFC 6265 section 5.4), as they stand there.
fn cookies<'h>(header: &'h [u8], name: &[u8]) -> impl Iterator<Item = &'h [u8]> {
    header.split(|&byte| byte == b';').filter_map(move |pair| {
        let pair = pair.trim_ascii();
        let equals = memchr::memchr(b'=', pair)?;
        (pair[..equals].trim_ascii_end() == name).then(|| &pair[equals + 1..])
    })
}

/// The raw values of one query parameter of a path. A name may be percent-encoded, since servers
/// decode it: `r%6Fom=x` must not pass beside `room=y`.
fn query_values<'p>(path: &'p [u8], name: &[u8]) -> impl Iterator<Item = &'p [u8]> {
    let path = memchr::memchr(b'#', path).map_or(path, |end| &path[..end]);
    let query = memchr::memchr(b'?', path).map_or(&[][..], |at| &path[at + 1..]);
    query.split(|&byte| byte == b'&').filter_map(move |pair| {
        let equals = memchr::memchr(b'=', pair)?;
        is_encoding_of(&pair[..equals], name).then(|| &pair[equals + 1..])
    })
}

/// Whether `raw`, percent-decoded, is `plain`. A broken encoding is no name.
fn is_encoding_of(raw: &[u8], plain: &[u8]) -> bool {
    if raw == plain {
        return true;
    }
    let mut rest = raw.iter();
    for &wanted in plain {
        let byte = match rest.next() {
            Some(b'%') => match (hex_value(rest.next()), hex_value(rest.next())) {
                (Some(high), Some(low)) => high << 4 | low,
                _ => return false,
            },
            Some(&byte) => byte,
            None => return false,
        };
        if byte != wanted {
            return false;
        }
    }
    rest.next().is_none()
}
