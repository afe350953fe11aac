//! Finds the key that a server made in its first answer (A7).
//!
//! A JSON path is looked for as the body arrives and is final as soon as its value is complete. A
//! pattern is tried once, on the first 1 KiB or the whole of a shorter body: only then does a match
//! not depend on how the body was cut. What is not found by then is absent.

use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};
use smallvec::SmallVec;

use crate::extract::HeaderView;
use crate::json_path::{JsonPath, Look};
use crate::key::{Key, KeyProblem};

/// How much of an answer's body is searched.
pub const MINT_BYTES_MAX: usize = 1024;

/// Largest compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Where an answer carries the key.
#[derive(Clone, Debug)]
pub struct MintedPlace(Place);

#[derive(Clone, Debug)]
enum Place {
    Header(String),
    Cookie(String),
    Body(Arc<BodyPlace>),
}

#[derive(Debug)]
enum BodyPlace {
    Json(JsonPath),
    Pattern(Regex),
}

/// What an answer gave. Everything but `NeedMore` is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mint {
    Found(Key),
    /// The key may stand in the body that is still to come.
    NeedMore,
    Absent,
    /// The server's fault: what stands there is no key, or two places differ.
    Bad(MintProblem),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MintProblem {
    NoKey(KeyProblem),
    /// The header or cookie was set twice, to different values.
    Conflict,
}

impl MintedPlace {
    pub(crate) fn header(name: String) -> MintedPlace {
        MintedPlace(Place::Header(name))
    }

    pub(crate) fn cookie(name: String) -> MintedPlace {
        MintedPlace(Place::Cookie(name))
    }

    pub(crate) fn json(path: &str) -> Result<MintedPlace, String> {
        let path = JsonPath::parse(path)?;
        Ok(MintedPlace(Place::Body(Arc::new(BodyPlace::Json(path)))))
    }

    pub(crate) fn body(pattern: &str) -> Result<MintedPlace, String> {
        let pattern = RegexBuilder::new(pattern)
            .size_limit(PATTERN_BYTES_MAX)
            .build()
            .map_err(|why| format!("is no RE2 pattern: {why}"))?;
        if pattern.captures_len() < 2 {
            return Err("must have a group, ( ), around the key".into());
        }
        Ok(MintedPlace(Place::Body(Arc::new(BodyPlace::Pattern(
            pattern,
        )))))
    }

    /// Looks at the answer's headers. `NeedMore`: feed its body to [`MintedPlace::reader`].
    #[must_use]
    pub fn find(&self, answer: &impl HeaderView) -> Mint {
        match &self.0 {
            Place::Header(name) => only_one(answer, name, |value| Some(value.trim_ascii())),
            Place::Cookie(name) => only_one(answer, "set-cookie", |value| {
                set_cookie(value, name.as_bytes())
            }),
            Place::Body(_) => Mint::NeedMore,
        }
    }

    /// `None` if the place is in the headers.
    #[must_use]
    pub fn reader(&self) -> Option<MintReader> {
        match &self.0 {
            Place::Body(place) => Some(MintReader {
                place: Arc::clone(place),
                head: SmallVec::new(),
                outcome: Mint::NeedMore,
            }),
            Place::Header(_) | Place::Cookie(_) => None,
        }
    }
}

/// One answer's search; keeps at most [`MINT_BYTES_MAX`] bytes.
#[derive(Debug)]
pub struct MintReader {
    place: Arc<BodyPlace>,
    head: SmallVec<[u8; 256]>,
    outcome: Mint,
}

impl MintReader {
    /// The next bytes of the body, and whether they are the last. Ignored after a final outcome.
    pub fn feed(&mut self, chunk: &[u8], ended: bool) -> Mint {
        if self.outcome != Mint::NeedMore {
            return self.outcome.clone();
        }
        let room = MINT_BYTES_MAX - self.head.len();
        self.head.extend_from_slice(&chunk[..room.min(chunk.len())]);
        let full = self.head.len() == MINT_BYTES_MAX;
        // A body of exactly 1 KiB is treated as cut, however its end is told.
        let whole = ended && !full;
        self.outcome = match &*self.place {
            BodyPlace::Json(path) => match path.find(&self.head, whole) {
                Look::Found(value) => to_mint(Key::parse(&value)),
                Look::NeedMore if !full => Mint::NeedMore,
                Look::NeedMore | Look::Absent => Mint::Absent,
            },
            BodyPlace::Pattern(pattern) if whole || full => pattern
                .captures(&self.head)
                .and_then(|groups| groups.get(1))
                .map_or(Mint::Absent, |group| to_mint(Key::parse(group.as_bytes()))),
            BodyPlace::Pattern(_) => Mint::NeedMore,
        };
        self.outcome.clone()
    }
}

fn to_mint(key: Result<Key, KeyProblem>) -> Mint {
    key.map_or_else(
        |problem| Mint::Bad(MintProblem::NoKey(problem)),
        Mint::Found,
    )
}

/// The one value that all headers `name` give; empty ones are absent.
fn only_one<'a>(
    answer: &'a impl HeaderView,
    name: &str,
    pick: impl Fn(&'a [u8]) -> Option<&'a [u8]>,
) -> Mint {
    let mut first = None;
    let mut index = 0;
    while let Some(header) = answer.header(name, index) {
        index += 1;
        let Some(value) = pick(header).filter(|value| !value.is_empty()) else {
            continue;
        };
        match first {
            Some(known) if known != value => return Mint::Bad(MintProblem::Conflict),
            _ => first = Some(value),
        }
    }
    first.map_or(Mint::Absent, |value| to_mint(Key::parse(value)))
}

/// The value of a `set-cookie` header (RFC 6265 section 5.2), if it is of that name.
fn set_cookie<'h>(header: &'h [u8], name: &[u8]) -> Option<&'h [u8]> {
    let end = memchr::memchr(b';', header).unwrap_or(header.len());
    let equals = memchr::memchr(b'=', &header[..end])?;
    (header[..equals].trim_ascii() == name).then(|| header[equals + 1..end].trim_ascii())
}
