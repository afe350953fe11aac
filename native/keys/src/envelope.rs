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

use std::sync::Arc;

use smallvec::SmallVec;

use crate::config::RouteConfig;
use crate::key::{KEY_BYTES_MAX, Key};
use crate::reason::Reason;
use crate::wire::{MESSAGE_BYTES_MAX, Varint, split_tag};

/// Deepest nesting of groups, as in Google's parsers.
const GROUP_DEPTH_MAX: usize = 100;

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

/// How the message stands in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The body is the message.
    Plain,
    /// Behind a byte of flags and four of length.
    Grpc,
}

impl Framing {
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

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The five bytes before a gRPC message; `seen` of them so far.
    Prefix {
        seen: u8,
        length: u32,
    },
    Tag,
    /// The value of a varint field, which nobody wants.
    Value,
    Length {
        field: u32,
    },
    Skip {
        left: u64,
    },
    /// An id that is wanted.
    Copy {
        part: usize,
        left: u64,
    },
    /// The marker; `seen` bytes of it agree.
    Marker {
        seen: usize,
        left: u64,
    },
}

/// A candidate or the envelope, while inside it.
#[derive(Debug)]
struct Candidate {
    /// Where it ends, counted from the start of the message.
    end: u64,
    marked: bool,
}

/// One body's search. O(1) memory, whatever arrives.
#[derive(Debug)]
pub struct EnvelopeScanner {
    place: Arc<EnvelopePlace>,
    step: Step,
    varint: Varint,
    /// Bytes of the message consumed.
    at: u64,
    limit: u64,
    /// Where a gRPC message ends.
    message_end: Option<u64>,
    candidate: Option<Candidate>,
    /// Numbers of the open groups. A candidate is never inside one.
    groups: SmallVec<[u32; 4]>,
    ids: [SmallVec<[u8; 24]>; 4],
    too_long: [bool; 4],
    outcome: Option<Progress>,
}

impl EnvelopeScanner {
    fn new(place: &Arc<EnvelopePlace>, framing: Framing, limit: u32) -> EnvelopeScanner {
        EnvelopeScanner {
            place: Arc::clone(place),
            step: match framing {
                Framing::Plain => Step::Tag,
                Framing::Grpc => Step::Prefix { seen: 0, length: 0 },
            },
            varint: Varint::default(),
            at: 0,
            limit: u64::from(limit),
            message_end: None,
            candidate: None,
            groups: SmallVec::new(),
            ids: Default::default(),
            too_long: [false; 4],
            outcome: None,
        }
    }

    /// The next bytes of the body, in any portions. After a final answer the rest is ignored.
    pub fn feed(&mut self, chunk: &[u8]) -> Progress {
        let mut rest = chunk;
        loop {
            if let Some(outcome) = &self.outcome {
                return outcome.clone();
            }
            if self.settle() {
                continue;
            }
            if rest.is_empty() {
                return Progress::NeedMore;
            }
            let used = self.consume(rest);
            rest = &rest[used..];
        }
    }

    /// The body has ended.
    pub fn finish(&mut self) -> Progress {
        if let Progress::NeedMore = self.feed(&[]) {
            // `settle` has closed a candidate that was complete, so an open one was cut.
            let untouched = matches!(self.step, Step::Prefix { seen: 0, .. });
            let complete = matches!(self.step, Step::Tag)
                && self.varint.is_empty()
                && self.groups.is_empty()
                && self.candidate.is_none()
                && self.message_end.is_none();
            self.outcome = Some(if complete || untouched {
                Progress::NotFound
            } else {
                Progress::Broken(Reason::BadEnvelope)
            });
        }
        self.outcome.clone().unwrap_or(Progress::NotFound)
    }

    /// Everything that needs no further byte. `true`: something changed.
    fn settle(&mut self) -> bool {
        match self.step {
            Step::Skip { left: 0 } | Step::Copy { left: 0, .. } => {
                self.step = Step::Tag;
                true
            }
            Step::Marker { left: 0, .. } => {
                self.step = Step::Tag;
                if let Some(candidate) = &mut self.candidate {
                    candidate.marked = true;
                }
                true
            }
            Step::Prefix { .. } => false,
            _ => self.settle_ends(),
        }
    }

    fn settle_ends(&mut self) -> bool {
        let between = matches!(self.step, Step::Tag) && self.varint.is_empty();
        if let Some(candidate) = &self.candidate {
            if self.at < candidate.end {
                return self.settle_limit();
            }
            if !between || !self.groups.is_empty() {
                self.leave_broken_candidate();
            } else if candidate.marked {
                self.outcome = Some(self.key());
            } else {
                self.leave_candidate();
            }
            return true;
        }
        if self.message_end == Some(self.at) {
            self.outcome = Some(if between && self.groups.is_empty() {
                Progress::NotFound
            } else {
                Progress::Broken(Reason::BadEnvelope)
            });
            return true;
        }
        self.settle_limit()
    }

    fn settle_limit(&mut self) -> bool {
        if self.at < self.limit {
            return false;
        }
        self.outcome = Some(Progress::NotFound);
        true
    }

    /// Takes at least one byte of `rest` and says how many.
    fn consume(&mut self, rest: &[u8]) -> usize {
        let used = match self.step {
            Step::Prefix { seen, length } => {
                self.prefix_byte(seen, length, rest[0]);
                return 1;
            }
            Step::Tag | Step::Value | Step::Length { .. } => {
                self.at += 1;
                self.varint_byte(rest[0]);
                return 1;
            }
            Step::Skip { left } => {
                let used = take(rest, left);
                self.step = Step::Skip {
                    left: left - used as u64,
                };
                used
            }
            Step::Copy { part, left } => {
                let used = take(rest, left);
                self.ids[part].extend_from_slice(&rest[..used]);
                self.step = Step::Copy {
                    part,
                    left: left - used as u64,
                };
                used
            }
            Step::Marker { seen, left } => {
                let used = take(rest, left);
                if self.place.marker[seen..seen + used] == rest[..used] {
                    self.step = Step::Marker {
                        seen: seen + used,
                        left: left - used as u64,
                    };
                } else {
                    self.leave_candidate();
                    return 0;
                }
                used
            }
        };
        self.at += used as u64;
        used
    }

    fn prefix_byte(&mut self, seen: u8, length: u32, byte: u8) {
        if seen == 0 && byte != 0 {
            // 1: compressed. Anything else is no flag of gRPC.
            self.break_off();
            return;
        }
        let length = if seen == 0 {
            0
        } else {
            length << 8 | u32::from(byte)
        };
        self.step = Step::Prefix {
            seen: seen + 1,
            length,
        };
        if seen == 4 {
            self.message_end = Some(u64::from(length));
            self.step = Step::Tag;
        }
    }

    fn varint_byte(&mut self, byte: u8) {
        match self.varint.push(byte) {
            Err(()) => self.break_off(),
            Ok(None) => {}
            Ok(Some(value)) => match self.step {
                Step::Tag => self.tag(value),
                Step::Length { field } => self.length(field, value),
                _ => self.step = Step::Tag,
            },
        }
    }

    fn tag(&mut self, value: u64) {
        let Some((field, kind)) = split_tag(value) else {
            return self.break_off();
        };
        match kind {
            0 => self.step = Step::Value,
            1 => self.skip(8),
            2 => self.step = Step::Length { field },
            3 if self.groups.len() < GROUP_DEPTH_MAX => {
                self.groups.push(field);
            }
            4 if self.groups.last() == Some(&field) => {
                self.groups.pop();
            }
            5 => self.skip(4),
            _ => self.break_off(),
        }
    }

    fn length(&mut self, field: u32, length: u64) {
        if length > MESSAGE_BYTES_MAX {
            return self.break_off();
        }
        let end = self.at + length;
        if self.candidate.is_some() {
            return self.length_inside(field, length, end);
        }
        if self
            .message_end
            .is_some_and(|message_end| end > message_end)
        {
            return self.break_off();
        }
        let wanted = self.groups.is_empty() && (self.place.field == 0 || self.place.field == field);
        if wanted && end <= self.limit {
            self.candidate = Some(Candidate { end, marked: false });
            self.step = Step::Tag;
        } else {
            self.skip(length);
        }
    }

    fn length_inside(&mut self, field: u32, length: u64, end: u64) {
        let Some(candidate) = &self.candidate else {
            return;
        };
        if end > candidate.end {
            return self.break_off();
        }
        self.step = Step::Skip { left: length };
        if !self.groups.is_empty() {
            return;
        }
        if field == self.place.numbers.marker {
            if length == self.place.marker.len() as u64 {
                self.step = Step::Marker {
                    seen: 0,
                    left: length,
                };
            } else {
                self.leave_candidate();
            }
            return;
        }
        let part = self
            .place
            .numbers
            .parts
            .iter()
            .position(|&number| number == field);
        let wanted =
            part.filter(|&part| self.place.uses.0.iter().any(|used| *used as usize == part));
        if let Some(part) = wanted {
            self.ids[part].clear();
            self.too_long[part] = length > KEY_BYTES_MAX as u64;
            if !self.too_long[part] {
                self.step = Step::Copy { part, left: length };
            }
        }
    }

    /// Skips bytes of the message; ends the search if that reaches beyond the limit.
    fn skip(&mut self, length: u64) {
        let end = self.at + length;
        if let Some(candidate) = &self.candidate {
            if end > candidate.end {
                return self.break_off();
            }
        } else if self
            .message_end
            .is_some_and(|message_end| end > message_end)
        {
            return self.break_off();
        } else if end >= self.limit {
            self.outcome = Some(Progress::NotFound);
        }
        self.step = Step::Skip { left: length };
    }

    /// What was read is no protobuf.
    fn break_off(&mut self) {
        if self.candidate.is_some() {
            self.leave_broken_candidate();
        } else {
            self.outcome = Some(Progress::Broken(Reason::BadEnvelope));
        }
    }

    fn leave_broken_candidate(&mut self) {
        if self
            .candidate
            .as_ref()
            .is_some_and(|candidate| candidate.marked)
        {
            self.outcome = Some(Progress::Broken(Reason::BadEnvelope));
        } else {
            self.leave_candidate();
        }
    }

    /// The field is not the envelope: its rest is skipped, what it gave is forgotten.
    fn leave_candidate(&mut self) {
        let Some(candidate) = self.candidate.take() else {
            return;
        };
        self.groups.clear();
        self.varint = Varint::default();
        self.too_long = [false; 4];
        self.ids.iter_mut().for_each(SmallVec::clear);
        self.step = Step::Skip {
            left: candidate.end - self.at,
        };
    }

    fn key(&self) -> Progress {
        if self.too_long.contains(&true) {
            return Progress::Broken(Reason::BadKey);
        }
        let uses = &self.place.uses.0;
        let mut joined: SmallVec<[u8; 64]> = SmallVec::new();
        for (index, part) in uses.iter().enumerate() {
            let id = &self.ids[*part as usize];
            if id.is_empty() {
                return Progress::NotFound;
            }
            if index > 0 {
                joined.push(b'/');
            }
            // Joined ids must not be mistaken for others: (a/b, c) is not (a, b/c).
            if uses.len() > 1 && id.contains(&b'/') {
                return Progress::Broken(Reason::BadKey);
            }
            joined.extend_from_slice(id);
        }
        Key::parse(&joined).map_or(Progress::Broken(Reason::BadKey), Progress::Found)
    }
}

fn take(rest: &[u8], left: u64) -> usize {
    usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()))
}
