//! The configuration of a route: places of the key, and what happens around them.

use std::sync::Arc;

use serde_json::Value;

use super::{ConfigError, HOUR_MS, NAME_BYTES_MAX, PATH_BYTES_MAX, SERVICE_BYTES_MAX};
use crate::envelope::{EnvelopePlace, EnvelopeUse, Numbers, Part};
use crate::host::HostTemplate;
use crate::members::Members;
use crate::minted::MintedPlace;
use crate::path::PathTemplate;
use crate::websocket::CLOSE_MOVED;

/// Most places of a route.
pub const PLACES_MAX: usize = 16;
const MARKER_BYTES_MAX: usize = 64;
const FIELD_NUMBER_MAX: u32 = (1 << 29) - 1;
const ENVELOPE_BYTES: (u32, u32) = (16, 1 << 20);
const ENVELOPE_BYTES_DEFAULT: u32 = 16_384;
const REPLAY_BYTES_MAX: u32 = 1 << 30;

/// What happens to a request without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKey {
    /// 400 `no-key`.
    Refuse,
    /// Any active server.
    Balance,
}

/// A route of `belay.edge`, compiled. Immutable: share it between workers.
#[derive(Clone, Debug)]
pub struct RouteConfig {
    pub service: String,
    pub guarded: bool,
    pub no_key: NoKey,
    /// Longest time that a request is held.
    pub park_ms: u32,
    /// Largest body that can be sent again.
    pub replay_bytes: u32,
    /// HTTP status of `unknown-key`.
    pub unknown_key_status: u16,
    /// How much of a body is searched for the envelope.
    pub envelope_bytes: u32,
    /// Close code of a WebSocket whose key moves.
    pub close_code: u16,
    /// Where the server's first answer carries the key that it made (A7).
    pub minted: Option<MintedPlace>,
    /// Path, header, cookie, query and host places, in the order of the file.
    pub(crate) places: Vec<Place>,
    pub(crate) envelope: Option<Arc<EnvelopePlace>>,
}

/// A place in the request's headers.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Path {
        template: PathTemplate,
        strip: bool,
    },
    /// The name is in lower case, as Envoy has it.
    Header(String),
    Cookie(String),
    Query(String),
    Host(HostTemplate),
}

impl RouteConfig {
    /// # Errors
    /// The first member that breaks docs/reference/module-config.md.
    pub fn parse(json: &[u8]) -> Result<RouteConfig, ConfigError> {
        let mut members = Members::parse(json)?;
        let mut route = RouteConfig {
            service: members.text("service", SERVICE_BYTES_MAX)?,
            guarded: members.flag("guarded")?,
            no_key: parse_no_key(&mut members)?,
            park_ms: members.whole("park_ms", 0, HOUR_MS)?,
            replay_bytes: members.whole("replay_bytes", 0, REPLAY_BYTES_MAX)?,
            unknown_key_status: members
                .whole_or("unknown_key_status", (400, 599), 404)?
                .try_into()
                .unwrap_or(404),
            envelope_bytes: members.whole_or(
                "envelope_bytes",
                ENVELOPE_BYTES,
                ENVELOPE_BYTES_DEFAULT,
            )?,
            close_code: members
                .whole_or("close_code", (1000, 4999), CLOSE_MOVED.into())?
                .try_into()
                .unwrap_or(CLOSE_MOVED),
            minted: None,
            places: Vec::new(),
            envelope: None,
        };
        let keys = members.array("keys")?;
        if keys.len() > PLACES_MAX {
            return Err(members.error("keys", format!("must have at most {PLACES_MAX} places")));
        }
        for (at, place) in keys.into_iter().enumerate() {
            route.add_place(Members::of(format!("keys[{at}]"), place)?)?;
        }
        // Paths first: a server id in the path ends the search.
        route
            .places
            .sort_by_key(|place| !matches!(place, Place::Path { .. }));
        if let Some(minted) = members.take("minted") {
            route.minted = Some(parse_minted(Members::of("minted".into(), minted)?)?);
        }
        members.end()?;
        Ok(route)
    }

    /// Whether the route looks for a key or a server id at all.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        !self.places.is_empty() || self.envelope.is_some()
    }

    fn add_place(&mut self, mut members: Members) -> Result<(), ConfigError> {
        let from = members.text("from", NAME_BYTES_MAX)?;
        match from.as_str() {
            "path" => {
                let text = members.text("template", PATH_BYTES_MAX)?;
                let template = PathTemplate::parse(&text)
                    .map_err(|problem| members.error("template", problem))?;
                let strip = members.flag_or("strip", true)?;
                self.places.push(Place::Path { template, strip });
            }
            "header" => self
                .places
                .push(Place::Header(parse_header_name(&mut members)?)),
            "cookie" => self
                .places
                .push(Place::Cookie(parse_cookie_name(&mut members)?)),
            "query" => self
                .places
                .push(Place::Query(members.text("name", NAME_BYTES_MAX)?)),
            "host" => {
                let template = HostTemplate::parse(&members.text("template", PATH_BYTES_MAX)?)
                    .map_err(|problem| members.error("template", problem))?;
                self.places.push(Place::Host(template));
            }
            "envelope" if self.envelope.is_some() => {
                return Err(members.error("from", "is the second envelope; a body has one"));
            }
            "envelope" => self.envelope = Some(Arc::new(parse_envelope(&mut members)?)),
            other => {
                let known = "path, header, cookie, query, host or envelope";
                return Err(members.error("from", format!("must be {known}, not {other:?}")));
            }
        }
        members.end()
    }
}

fn parse_no_key(members: &mut Members) -> Result<NoKey, ConfigError> {
    match members.text("no_key", NAME_BYTES_MAX)?.as_str() {
        "refuse" => Ok(NoKey::Refuse),
        "balance" => Ok(NoKey::Balance),
        other => {
            let problem = format!("must be \"refuse\" or \"balance\", not {other:?}");
            Err(members.error("no_key", problem))
        }
    }
}

fn parse_minted(mut members: Members) -> Result<MintedPlace, ConfigError> {
    let from = members.text("from", NAME_BYTES_MAX)?;
    let place = match from.as_str() {
        "header" => MintedPlace::header(parse_header_name(&mut members)?),
        "cookie" => MintedPlace::cookie(parse_cookie_name(&mut members)?),
        "json" => MintedPlace::json(&members.text("path", PATH_BYTES_MAX)?)
            .map_err(|problem| members.error("path", problem))?,
        "body" => MintedPlace::body(&members.text("pattern", PATH_BYTES_MAX)?)
            .map_err(|problem| members.error("pattern", problem))?,
        other => {
            let problem = format!("must be header, cookie, json or body, not {other:?}");
            return Err(members.error("from", problem));
        }
    };
    members.end()?;
    Ok(place)
}

/// RFC 9110 `token`: header and cookie names.
fn is_token(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn parse_header_name(members: &mut Members) -> Result<String, ConfigError> {
    let name = members.text("name", NAME_BYTES_MAX)?.to_ascii_lowercase();
    if !is_token(&name) {
        return Err(members.error("name", format!("is no header name: {name:?}")));
    }
    if name == "host" {
        let problem = "is the authority: a key in it is `from: host`";
        return Err(members.error("name", problem));
    }
    // The edge strips these before it looks for keys (P4).
    if name.starts_with("x-belay-") || name.starts_with("x-envoy-") {
        return Err(members.error(
            "name",
            format!("is a header that the edge removes: {name:?}"),
        ));
    }
    Ok(name)
}

fn parse_cookie_name(members: &mut Members) -> Result<String, ConfigError> {
    let name = members.text("name", NAME_BYTES_MAX)?;
    if is_token(&name) {
        Ok(name)
    } else {
        Err(members.error("name", format!("is no cookie name: {name:?}")))
    }
}

fn parse_envelope(members: &mut Members) -> Result<EnvelopePlace, ConfigError> {
    let field = members.whole("field", 0, FIELD_NUMBER_MAX)?;
    let marker = members
        .text("marker", MARKER_BYTES_MAX)?
        .into_bytes()
        .into();
    let uses = match members.require("use")? {
        Value::Array(items) => items,
        single => vec![single],
    };
    let mut parts = Vec::new();
    for part in uses {
        let name = members.as_text("use", part, NAME_BYTES_MAX)?;
        let part = Part::from_name(&name).ok_or_else(|| {
            let problem = format!("must be app, server, player or envelope, not {name:?}");
            members.error("use", problem)
        })?;
        if parts.contains(&part) {
            return Err(members.error("use", format!("names {name:?} twice")));
        }
        parts.push(part);
    }
    let uses = EnvelopeUse::of(&parts).ok_or_else(|| members.error("use", "is empty"))?;
    let numbers = match members.take("numbers") {
        None => Numbers::default(),
        Some(value) => parse_numbers(Members::of(members.path("numbers"), value)?)?,
    };
    Ok(EnvelopePlace {
        field,
        marker,
        uses,
        numbers,
    })
}

fn parse_numbers(mut members: Members) -> Result<Numbers, ConfigError> {
    let default = Numbers::default();
    let range = (1, FIELD_NUMBER_MAX);
    let numbers = Numbers {
        marker: members.whole_or("marker", range, default.marker)?,
        version: members.whole_or("version", range, default.version)?,
        parts: [
            members.whole_or("app", range, default.parts[0])?,
            members.whole_or("server", range, default.parts[1])?,
            members.whole_or("player", range, default.parts[2])?,
            members.whole_or("envelope", range, default.parts[3])?,
        ],
    };
    let mut all = [numbers.marker, numbers.version, 0, 0, 0, 0];
    all[2..].copy_from_slice(&numbers.parts);
    all.sort_unstable();
    if all.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(members.error("marker", "and the other numbers must all differ"));
    }
    members.end()?;
    Ok(numbers)
}
