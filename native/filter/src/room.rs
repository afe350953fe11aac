//! The waiting room's filter `belay.room`.
//!
//! Stands downstream in an internal listener of the same Envoy, where holding a request is safe. An
//! attempt comes here when it has no usable owner. It leaves with 421 and `x-belay-refused`, by which
//! the router picks again, or with the final answer and its reason. Its body is thrown away here: the
//! router keeps it for the next attempt.

use crate::abi::{BodyStatus, HeadersStatus, HttpFilter, Stream, TrailersStatus};
use crate::answer::Reply;
use crate::headers::{KEY, REFUSED, RequestHeaders, SERVER, WAIT, is_grpc};
use crate::process::{self, Process};
use crate::wait::{Cause, State, Wait};
use crate::wakers::{Event, Wakeable};
use belay_keys::{Key, Reason};
use belay_owner::{Answer, Parked, Refusal, ServerAnswer, Service, StreamId};
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Pause before an attempt is sent again to a server that knew less than we do (R1).
const BEHIND: Duration = Duration::from_millis(50);

/// Pauses before a host is tried again grow from here, doubling with every visit …
const PAUSE_MIN_MS: u64 = 50;

/// … to here.
const PAUSE_MAX_MS: u64 = 1_000;

/// Visits after which even a request whose owner is known pauses, lest it run in circles.
const VISITS_FREE: u32 = 4;

/// Looks at the map in one go, while it changes under us.
const LOOKS_MAX: u32 = 8;

/// One visit.
#[derive(Default)]
pub struct Room {
    visit: RefCell<Option<Visit>>,
    answered: Cell<bool>,
}

struct Visit {
    wait: Wait,
    cause: Cause,
    service: Service,
    process: &'static Process,
    wakeable: Option<Wakeable>,
}

/// What to do with a visitor.
#[derive(Clone, Copy)]
enum Next {
    TryAgain,
    Hold,
    Pause(Duration),
    End(Reply),
}

impl Room {
    fn first(&self, stream: &mut Stream) -> Next {
        let pause = self
            .visit
            .borrow()
            .as_ref()
            .and_then(|visit| match visit.cause {
                Cause::Owner if visit.wait.visits > VISITS_FREE => Some(growing(visit.wait.visits)),
                Cause::Owner => None,
                Cause::Host | Cause::Connect => Some(growing(visit.wait.visits)),
                Cause::Behind => Some(BEHIND),
            });
        match pause {
            Some(pause) => Next::Pause(pause),
            None => self.look(stream),
        }
    }

    /// Asks the owner map; parks the request where it has to be waited for.
    fn look(&self, stream: &mut Stream) -> Next {
        let mut visit = self.visit.borrow_mut();
        let Some(visit) = &mut *visit else {
            return Next::End(Reply::of(Reason::Internal));
        };
        for _ in 0..LOOKS_MAX {
            let Some(left_ms) = visit.left_ms() else {
                return Next::End(visit.too_late(None));
            };
            let Some(key) = stream.request_header(KEY) else {
                return visit.look_without_key(stream);
            };
            let Ok(key) = Key::parse_percent_encoded(key) else {
                return Next::End(Reply::of(Reason::Internal));
            };
            match visit.service.lookup(key.as_bytes()) {
                Answer::Owner(_) => return Next::TryAgain,
                Answer::Refused {
                    reason,
                    retry_after_ms,
                } => {
                    return Next::End(Reply::refusal(reason, retry_after_ms));
                }
                Answer::Miss | Answer::Moving => {}
            }
            let id = visit.id(stream);
            match visit.service.park(key.as_bytes(), id, left_ms) {
                Parked::Waiting => return Next::Hold,
                Parked::Full => return Next::End(Reply::of(Reason::ParkFull)),
                Parked::LookAgain => {}
            }
        }
        Next::Pause(Duration::from_millis(PAUSE_MIN_MS))
    }

    fn act(&self, stream: &mut Stream, next: Next) -> HeadersStatus {
        match next {
            Next::TryAgain => self.try_again(stream),
            Next::End(reply) => self.end(stream, reply),
            Next::Hold => HeadersStatus::StopIteration,
            Next::Pause(pause) => {
                let paused = self.visit.borrow_mut().as_mut().is_some_and(|visit| {
                    let id = visit.id(stream);
                    let left = visit
                        .left_ms()
                        .map_or(Duration::ZERO, Duration::from_millis);
                    visit.process.delay.pause(id, pause.min(left))
                });
                if paused {
                    HeadersStatus::StopIteration
                } else {
                    self.end(stream, Reply::of(Reason::ParkFull))
                }
            }
        }
    }

    fn paused(&self, stream: &mut Stream) -> Next {
        let (in_time, cause) = match &*self.visit.borrow() {
            Some(visit) => (visit.left_ms().is_some(), visit.cause),
            None => (false, Cause::Owner),
        };
        match cause {
            _ if !in_time => self.too_late(None),
            Cause::Owner => self.look(stream),
            Cause::Host | Cause::Connect | Cause::Behind => Next::TryAgain,
        }
    }

    fn too_late(&self, reason: Option<Reason>) -> Next {
        let visit = self.visit.borrow();
        Next::End(
            visit
                .as_ref()
                .map_or(Reply::of(Reason::Moving), |visit| visit.too_late(reason)),
        )
    }

    /// Nothing wakes this visit any more.
    fn leave(&self) {
        self.answered.set(true);
        if let Some(visit) = self.visit.take()
            && let Some(wakeable) = visit.wakeable
        {
            visit.process.proxy.unpark(wakeable.id);
        }
    }

    fn try_again(&self, stream: &mut Stream) -> HeadersStatus {
        self.leave();
        let refused: (&str, &[u8]) = (REFUSED, b"0; as-of=0; reason=wait");
        if is_grpc(stream) {
            stream.send_response(
                200,
                &[refused, ("grpc-status", b"14")],
                b"",
                "belay_try_again",
            );
        } else {
            stream.send_response(421, &[refused], b"", "belay_try_again");
        }
        HeadersStatus::StopIteration
    }

    fn end(&self, stream: &mut Stream, reply: Reply) -> HeadersStatus {
        if let Some(visit) = &*self.visit.borrow() {
            visit
                .process
                .metrics
                .service(&visit.wait.service)
                .answered(reply.reason);
        }
        self.leave();
        reply.send(stream);
        HeadersStatus::StopIteration
    }
}

impl HttpFilter for Room {
    fn request_headers(&self, stream: &mut Stream, _end: bool) -> HeadersStatus {
        let Some(process) = process::get() else {
            return self.end(stream, Reply::of(Reason::NoSnapshot));
        };
        let Some(wait) = stream.request_header(WAIT).and_then(Wait::parse) else {
            return self.end(stream, Reply::of(Reason::Internal));
        };
        let cause = match wait.state {
            State::Room(cause) => cause,
            _ => Cause::Owner,
        };
        let service = process.proxy.service(&wait.service);
        let visit = Visit {
            wait,
            cause,
            service,
            process,
            wakeable: None,
        };
        self.visit.replace(Some(visit));
        let next = self.first(stream);
        self.act(stream, next)
    }

    fn request_body(&self, _stream: &mut Stream, _end: bool) -> BodyStatus {
        BodyStatus::StopNoBuffer
    }

    fn request_trailers(&self, _stream: &mut Stream) -> TrailersStatus {
        TrailersStatus::StopIteration
    }

    fn scheduled(&self, stream: &mut Stream, event: u64) {
        if self.answered.get() {
            return;
        }
        let next = match Event::decode(event) {
            Some(Event::Answer) => self.look(stream),
            Some(Event::Deadline(reason)) => self.too_late(Some(reason)),
            Some(Event::Pause) => self.paused(stream),
            _ => return,
        };
        self.act(stream, next);
    }

    fn stream_complete(&self, _stream: &mut Stream) {
        self.leave();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Visit {
    fn id(&mut self, stream: &mut Stream) -> StreamId {
        self.wakeable
            .get_or_insert_with(|| self.process.wakers.register(stream))
            .id
    }

    /// `None`: the deadline is over.
    fn left_ms(&self) -> Option<u64> {
        self.wait
            .deadline_ms
            .checked_sub(process::now_ms())
            .filter(|left| *left > 0)
    }

    fn too_late(&self, reason: Option<Reason>) -> Reply {
        Reply::of(reason.unwrap_or(match self.cause {
            Cause::Owner => Reason::Moving,
            Cause::Host | Cause::Connect => Reason::NoServer,
            Cause::Behind => Reason::Refused,
        }))
    }

    /// For keyless requests and those that name a server: nothing to park for.
    fn look_without_key(&self, stream: &Stream) -> Next {
        if let Some(incarnation) = stream.request_number(SERVER) {
            return match self.service.pick_server(incarnation) {
                Answer::Refused {
                    reason,
                    retry_after_ms,
                } => Next::End(Reply::refusal(reason, retry_after_ms)),
                _ => Next::TryAgain,
            };
        }
        if !self.service.active_servers().is_empty() {
            return Next::TryAgain;
        }
        // Nobody has an empty id: this asks only whether anything may be believed.
        Next::End(match self.service.server("") {
            ServerAnswer::Refused(refusal) => Reply::refusal(refusal, 0),
            _ => Reply::refusal(Refusal::NoServer, 0),
        })
    }
}

fn growing(visits: u32) -> Duration {
    let doubled = PAUSE_MIN_MS << visits.saturating_sub(1).min(8);
    Duration::from_millis(doubled.min(PAUSE_MAX_MS))
}

#[cfg(test)]
mod tests {
    use super::growing;
    use std::time::Duration;

    #[test]
    fn pauses_grow_to_a_second() {
        assert_eq!(growing(1), Duration::from_millis(50));
        assert_eq!(growing(3), Duration::from_millis(200));
        assert_eq!(growing(99), Duration::from_secs(1));
    }
}
