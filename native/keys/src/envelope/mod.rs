//! Finds the envelope in a protobuf body without its schema, as the body arrives (C1).
//!
//! The body is walked as one message. Candidates are its top-level length-delimited fields (of one
//! number, if the place states it), tried as messages. One is the envelope if its marker field is
//! the marker, and the first one counts; a candidate that is no protobuf is text or bytes of the
//! application, and is skipped. Nothing is descended into further, so depth costs nothing. Each
//! byte is looked at once or skipped; only the wanted ids (at most 256 bytes each) are copied.
//!
//! - An envelope must end within the scan limit. A field that reaches beyond it ends the search at
//!   once, so the rest of a large body is never waited for.
//! - Inside the envelope the last occurrence of an id counts, as protobuf has it; an empty id is an
//!   absent one. If a wanted id is absent there is no key.
//! - Broken wire format is `bad-envelope`; so is an envelope that has the marker and is broken.
//! - Of a gRPC stream the first message is searched.

mod ids;
mod scanner;

use smallvec::SmallVec;

use crate::config::RouteConfig;
use crate::extract::HeaderView;
use crate::key::Key;
use crate::reason::Reason;

pub use scanner::EnvelopeScanner;

/// A routing id of the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    App,
    Server,
    Player,
    Envelope,
}

impl Part {
    pub(crate) fn from_name(name: &str) -> Option<Part> {
        match name {
            "app" => Some(Part::App),
            "server" => Some(Part::Server),
            "player" => Some(Part::Player),
            "envelope" => Some(Part::Envelope),
            _ => None,
        }
    }
}

/// The ids that make the key, in order; joined by `/`.
#[derive(Clone, Debug)]
pub(crate) struct EnvelopeUse(SmallVec<[Part; 4]>);

impl EnvelopeUse {
    pub(crate) fn of(parts: &[Part]) -> Option<EnvelopeUse> {
        (!parts.is_empty()).then(|| EnvelopeUse(SmallVec::from_slice(parts)))
    }
}

/// Field numbers inside the envelope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) marker: u32,
    /// Read by servers; every version is routed.
    pub(crate) version: u32,
    /// Of app, server, player, envelope.
    pub(crate) parts: [u32; 4],
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers {
            marker: 1,
            version: 2,
            parts: [3, 4, 5, 6],
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct EnvelopePlace {
    /// Number of the top-level field; 0: any.
    pub(crate) field: u32,
    pub(crate) marker: Box<[u8]>,
    pub(crate) uses: EnvelopeUse,
    pub(crate) numbers: Numbers,
}

impl EnvelopePlace {
    /// The part that the field of this number holds, if the key needs it.
    fn wanted(&self, field: u32) -> Option<Part> {
        let holds = |part: &Part| self.numbers.parts[*part as usize] == field;
        self.uses.0.iter().copied().find(holds)
    }
}

/// How the message stands in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The body is the message.
    Plain,
    /// Behind a byte of flags and four of length.
    Grpc,
}

impl Framing {
    /// By the headers of the request.
    ///
    /// # Errors
    /// `bad-envelope`: the whole body is compressed, so nothing can be read in it.
    pub fn of(request: &impl HeaderView) -> Result<Framing, Reason> {
        let encoding = request
            .header("content-encoding", 0)
            .unwrap_or_default()
            .trim_ascii();
        if !encoding.is_empty() && !encoding.eq_ignore_ascii_case(b"identity") {
            return Err(Reason::BadEnvelope);
        }
        Ok(Framing::of_content_type(
            request.header("content-type", 0).unwrap_or_default(),
        ))
    }

    /// By the request's `content-type`.
    #[must_use]
    pub fn of_content_type(content_type: &[u8]) -> Framing {
        const GRPC: &[u8] = b"application/grpc";
        match content_type.get(..GRPC.len()) {
            Some(start) if start.eq_ignore_ascii_case(GRPC) => Framing::Grpc,
            _ => Framing::Plain,
        }
    }
}

/// How far the search is. Everything but `NeedMore` is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    NeedMore,
    Found(Key),
    /// No envelope, or not the wanted ids in it.
    NotFound,
    /// `bad-envelope`, or `bad-key` if the ids make no key.
    Broken(Reason),
}

impl RouteConfig {
    /// A scanner for one request's body; `None` if the route has no envelope.
    #[must_use]
    pub fn envelope_scanner(&self, framing: Framing) -> Option<EnvelopeScanner> {
        let place = self.envelope.as_ref()?;
        Some(EnvelopeScanner::new(place, framing, self.envelope_bytes))
    }
}
