//! The search itself, one state for each kind of byte that can come next.

use std::sync::Arc;

use smallvec::SmallVec;

use super::ids::Ids;
use super::{EnvelopePlace, Framing, Part, Progress};
use crate::reason::Reason;
use crate::wire::{MESSAGE_BYTES_MAX, Varint, split_tag};

/// Deepest nesting of groups, as in Google's parsers.
const GROUP_DEPTH_MAX: usize = 100;

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
        part: Part,
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
    ids: Ids,
    outcome: Option<Progress>,
}

impl EnvelopeScanner {
    pub(super) fn new(place: &Arc<EnvelopePlace>, framing: Framing, limit: u32) -> EnvelopeScanner {
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
            ids: Ids::default(),
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
                self.outcome = Some(self.ids.key(&self.place.uses));
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
                self.ids.extend(part, &rest[..used]);
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
        if let Some(part) = self.place.wanted(field)
            && self.ids.begin(part, length)
        {
            self.step = Step::Copy { part, left: length };
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
        self.ids = Ids::default();
        self.step = Step::Skip {
            left: candidate.end - self.at,
        };
    }
}

fn take(rest: &[u8], left: u64) -> usize {
    usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()))
}
