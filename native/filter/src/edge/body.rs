//! A request's body: the envelope, read from views as the body arrives.

use super::request::Verdict;
use super::{Edge, Phase};
use crate::abi::{Body, BodyStatus, Stream, TrailersStatus};
use crate::answer::Reply;
use crate::last_pick;
use belay_keys::{Progress, Reason};

impl Verdict {
    fn body(self) -> BodyStatus {
        match self {
            Self::Go => BodyStatus::Continue,
            Self::Hold => BodyStatus::StopAndWatermark,
            Self::Answered => BodyStatus::StopNoBuffer,
        }
    }
}

impl Edge {
    pub(super) fn watch_body(&self, stream: &mut Stream, end: bool) -> BodyStatus {
        let phase = self.phase.get();
        if phase == Phase::Searching {
            return self.search(stream, end);
        }
        self.received(stream.body_size(Body::ReceivedRequest));
        match phase {
            Phase::Held => BodyStatus::StopAndWatermark,
            Phase::Answered => BodyStatus::StopNoBuffer,
            _ => BodyStatus::Continue,
        }
    }

    fn received(&self, bytes: usize) {
        self.body_bytes.set(self.body_bytes.get() + bytes as u64);
    }

    fn search(&self, stream: &mut Stream, end: bool) -> BodyStatus {
        let progress = {
            let mut scanner = self.scanner.borrow_mut();
            let Some(scanner) = &mut *scanner else {
                return BodyStatus::Continue;
            };
            let mut progress = Progress::NeedMore;
            for slice in stream.body(Body::ReceivedRequest) {
                self.received(slice.len());
                if progress == Progress::NeedMore {
                    progress = scanner.feed(slice);
                }
            }
            if end && progress == Progress::NeedMore {
                scanner.finish()
            } else {
                progress
            }
        };
        match progress {
            Progress::NeedMore => BodyStatus::StopAndBuffer,
            found => self.searched(stream, found).body(),
        }
    }

    /// The body ended by trailers.
    pub(super) fn body_ended(&self, stream: &mut Stream) -> TrailersStatus {
        let progress = self
            .scanner
            .borrow_mut()
            .as_mut()
            .map_or(Progress::NotFound, |scanner| scanner.finish());
        match self.searched(stream, progress) {
            Verdict::Go => TrailersStatus::Continue,
            Verdict::Hold | Verdict::Answered => TrailersStatus::StopIteration,
        }
    }

    fn searched(&self, stream: &mut Stream, progress: Progress) -> Verdict {
        last_pick::clear();
        self.phase.set(Phase::Passing);
        self.scanner.replace(None);
        let Some(route) = self.route.get() else {
            return Verdict::Go;
        };
        match progress {
            Progress::Found(key) => self.with_key(stream, route, key),
            Progress::NotFound | Progress::NeedMore => self.without_key(stream, route),
            Progress::Broken(reason) => {
                self.reply(stream, Reply::of(reason));
                Verdict::Answered
            }
        }
    }

    /// R5: whether the body was too large to be sent again.
    pub(super) fn refused_reason(&self) -> Reason {
        let limit = self
            .route
            .get()
            .map_or(u64::MAX, |route| u64::from(route.config.replay_bytes));
        if self.body_bytes.get() > limit {
            Reason::TooLargeToResend
        } else {
            Reason::Refused
        }
    }
}
