//! The upstream filter `belay.attempt`: runs once for every attempt, beside the server that it goes to.

use crate::abi::{BodyStatus, HeadersStatus, HttpFilter, Map, Stream, TrailersStatus};
use crate::answer::Reply;
use crate::headers::{
    ATTEMPT, Answered, EPOCH, INCARNATION, KEY, REFUSED, RequestHeaders, WAIT, is_ours, strip,
};
use crate::last_pick::{self, LastPick, ServerPick};
use crate::metrics::Outcome;
use crate::process::{self, Known};
use crate::wait::{Cause, REFUSALS_MAX, RefusalHeader, State, Wait};
use crate::wakers::{Event, Wakeable};
use belay_keys::{AttemptConfig, Key, Reason};
use belay_owner::{AfterRefusal, Opened, Pick, ServerRefusal, Service};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An answer that still flows after this is registered, so that its key does not idle out (A5).
const LONG_STREAM: Duration = Duration::from_secs(5);

/// What all attempts of one upstream cluster share.
pub struct AttemptSettings {
    known: Known,
    guarded: bool,
}

impl AttemptSettings {
    #[must_use]
    pub fn new(config: AttemptConfig) -> Self {
        Self {
            known: Known::new(config.service),
            guarded: config.guarded,
        }
    }
}

/// One attempt.
pub struct Attempt {
    settings: Arc<AttemptSettings>,
    /// Holds the count in flight of an unguarded service until the attempt has ended (M4).
    pick: RefCell<Option<Pick>>,
    key: RefCell<Option<Key>>,
    wakeable: RefCell<Option<Wakeable>>,
    /// When the answer began; `None` before.
    answered: Cell<Option<Instant>>,
}

impl Attempt {
    #[must_use]
    pub fn new(settings: Arc<AttemptSettings>) -> Self {
        let (pick, key, wakeable, answered) = Default::default();
        Self {
            settings,
            pick,
            key,
            wakeable,
            answered,
        }
    }

    fn to_server(
        &self,
        stream: &mut Stream,
        service: &Service,
        picked: ServerPick,
    ) -> HeadersStatus {
        let ServerPick {
            pick,
            key,
            is_first,
        } = picked;
        self.key.replace(key);
        if is_first {
            write_first(stream, &pick);
        } else {
            self.write_again(stream, &pick);
        }
        let unguarded = !self.settings.guarded;
        let moved = unguarded && self.open(stream, service, &pick) == Some(Opened::Moved);
        self.pick.replace(Some(pick));
        if moved {
            // Ownership went between the pick and now; nothing was sent. Local replies of an
            // upstream filter are final, and this gap is a few microseconds.
            self.reply(stream, Reason::Moving);
            return HeadersStatus::StopIteration;
        }
        HeadersStatus::Continue
    }

    /// The headers of a request that went somewhere before.
    fn write_again(&self, stream: &mut Stream, pick: &Pick) {
        if let Some(wait) = stream.request_header(WAIT).and_then(Wait::parse) {
            note(
                stream,
                &Wait {
                    state: wait.state.sent(),
                    ..wait
                },
            );
        }
        let before = stream.request_number(ATTEMPT).unwrap_or(0);
        if before > 0 {
            self.count(Outcome::Rerouted);
        }
        let mut digits = itoa::Buffer::new();
        let mut set = |name: &str, number: u64| {
            stream.set_header(Map::Request, name, digits.format(number).as_bytes());
        };
        set(ATTEMPT, before + 1);
        set(INCARNATION, pick.server.incarnation);
        if pick.epoch > 0 {
            set(EPOCH, pick.epoch);
        } else {
            stream.remove_header(Map::Request, EPOCH.as_bytes());
        }
    }

    /// Registers the attempt, so that the feed can end it (P1, M2). `None`: not possible here.
    fn open(&self, stream: &mut Stream, service: &Service, pick: &Pick) -> Option<Opened> {
        let process = process::get()?;
        let wakeable = process.wakers.register(stream);
        let key = self.key.borrow();
        let key = key.as_ref().map_or(&[][..], Key::as_bytes);
        let opened = service.open_attempt(key, pick, wakeable.id);
        self.wakeable.replace(Some(wakeable));
        Some(opened)
    }

    fn to_room(&self, stream: &mut Stream, service: &Service, cause: Cause) {
        self.count(Outcome::Waited);
        if cause == Cause::Connect {
            forget_unreachable(stream, service);
        }
        let wait = wait_of(stream, service);
        note(
            stream,
            &Wait {
                state: State::Room(cause),
                visits: wait.visits + 1,
                ..wait
            },
        );
        if stream.request_header(ATTEMPT).is_none() {
            stream.set_header(Map::Request, ATTEMPT, b"0");
        }
    }

    /// R1, R2: passes the refusal on, by which the router tries again; or ends it.
    fn refused(&self, stream: &mut Stream, service: &Service, refusal: RefusalHeader) {
        self.count(Outcome::Refused);
        self.close();
        let wait = wait_of(stream, service);
        if wait.refusals >= REFUSALS_MAX {
            self.rewrite(stream, Reason::Refused);
            return;
        }
        let RefusalHeader { incarnation, as_of } = refusal;
        let resent = wait.state == State::SentAgain;
        let after = self.key.borrow().as_ref().map(|key| {
            service.refused(
                key.as_bytes(),
                ServerRefusal {
                    incarnation,
                    as_of,
                    resent,
                },
            )
        });
        let state = match after {
            Some(AfterRefusal::WaitAndResend) => State::Behind,
            Some(AfterRefusal::SendAgain | AfterRefusal::Park) | None => State::Refused,
        };
        note(
            stream,
            &Wait {
                state,
                refusals: wait.refusals + 1,
                ..wait
            },
        );
        let value = format!("{incarnation}; as-of={as_of}; reason=refused");
        stream.set_header(Map::Response, REFUSED, value.as_bytes());
    }

    /// G7: whether the key has a newer owner that was named without a release by the older.
    fn is_outcome_unknown(&self, service: &Service, pick: &Pick, answered: Option<u64>) -> bool {
        let epoch = answered.unwrap_or(pick.epoch);
        pick.epoch > 0
            && self.key.borrow().as_ref().is_some_and(|key| {
                service.is_outcome_unknown(key.as_bytes(), epoch, pick.server.incarnation)
            })
    }

    fn close(&self) {
        if let (Some(wakeable), Some(process)) = (self.wakeable.take(), process::get()) {
            process.proxy.close(wakeable.id);
        }
    }

    fn reply(&self, stream: &mut Stream, reason: Reason) {
        self.answered_by_us(reason);
        Reply::of(reason).send(stream);
    }

    fn rewrite(&self, stream: &mut Stream, reason: Reason) {
        self.answered_by_us(reason);
        Reply::of(reason).rewrite(stream);
    }

    fn answered_by_us(&self, reason: Reason) {
        if let Some(metrics) = self.settings.known.metrics() {
            metrics.answered(reason);
        }
    }

    fn count(&self, outcome: Outcome) {
        if let Some(metrics) = self.settings.known.metrics() {
            metrics.count(outcome);
        }
    }
}

impl HttpFilter for Attempt {
    fn request_headers(&self, stream: &mut Stream, _end: bool) -> HeadersStatus {
        let Some(service) = self.settings.known.service() else {
            return HeadersStatus::Continue;
        };
        match last_pick::take() {
            Some(LastPick::Server(picked)) => self.to_server(stream, service, picked),
            Some(LastPick::Room(cause)) => {
                self.to_room(stream, service, cause);
                HeadersStatus::Continue
            }
            None => HeadersStatus::Continue,
        }
    }

    fn response_headers(&self, stream: &mut Stream, end: bool) -> HeadersStatus {
        let pick = self.pick.borrow();
        let (Some(pick), Some(service)) = (&*pick, self.settings.known.service()) else {
            return HeadersStatus::Continue;
        };
        let answered = Answered::of(stream);
        if answered.has_ours {
            strip(stream, Map::Response, is_ours);
        }
        if answered.is_refused {
            let refusal = answered.refusal;
            match refusal.filter(|refusal| refusal.incarnation == pick.server.incarnation) {
                Some(refusal) => self.refused(stream, service, refusal),
                // G4: not the word of the server that we asked, so nothing is known.
                None => self.rewrite(stream, Reason::OutcomeUnknown),
            }
            return HeadersStatus::Continue;
        }
        if self.settings.guarded && self.is_outcome_unknown(service, pick, answered.epoch) {
            self.rewrite(stream, Reason::OutcomeUnknown);
            return HeadersStatus::Continue;
        }
        if !end {
            self.answered.set(Some(Instant::now()));
        }
        if answered.is_upgrade && self.wakeable.borrow().is_some() {
            // An accepted WebSocket is the edge's: it knows where frames end.
            self.close();
        }
        HeadersStatus::Continue
    }

    fn response_body(&self, stream: &mut Stream, end: bool) -> BodyStatus {
        if !end
            && self.settings.guarded
            && self.wakeable.borrow().is_none()
            && self
                .answered
                .get()
                .is_some_and(|began| began.elapsed() > LONG_STREAM)
            && let (Some(pick), Some(service)) =
                (&*self.pick.borrow(), self.settings.known.service())
        {
            let _ = self.open(stream, service, pick);
        }
        BodyStatus::Continue
    }

    fn response_trailers(&self, stream: &mut Stream) -> TrailersStatus {
        if self.pick.borrow().is_some() {
            strip(stream, Map::ResponseTrailers, is_ours);
        }
        TrailersStatus::Continue
    }

    fn scheduled(&self, stream: &mut Stream, event: u64) {
        if self.wakeable.borrow().is_none() {
            return;
        }
        let reason = match Event::decode(event) {
            Some(Event::Reset(reason)) => reason,
            Some(Event::CloseMoved) => Reason::OutcomeUnknown,
            _ => return,
        };
        self.close();
        if self.answered.get().is_none() {
            self.reply(stream, reason);
        } else {
            // Never a clean end (G6, P1).
            stream.reset("belay_ownership_lost");
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.close();
    }
}

/// The edge has stripped what the client said, so none of these is there.
fn write_first(stream: &mut Stream, pick: &Pick) {
    let mut digits = itoa::Buffer::new();
    stream.add_header(Map::Request, ATTEMPT, b"1");
    let incarnation = digits.format(pick.server.incarnation).as_bytes();
    stream.add_header(Map::Request, INCARNATION, incarnation);
    if pick.epoch > 0 {
        stream.add_header(Map::Request, EPOCH, digits.format(pick.epoch).as_bytes());
    }
}

/// The key of the request, as the edge wrote it.
fn key_of(stream: &Stream) -> Option<Key> {
    Key::parse_percent_encoded(stream.request_header(KEY)?).ok()
}

/// The note of the request, or a new one.
fn wait_of(stream: &Stream, service: &Service) -> Wait {
    stream
        .request_header(WAIT)
        .and_then(Wait::parse)
        .unwrap_or_else(|| Wait {
            state: State::Sent,
            deadline_ms: process::now_ms() + u64::from(service.park_ms()),
            refusals: 0,
            visits: 0,
            service: service.name().to_owned(),
        })
}

fn note(stream: &mut Stream, wait: &Wait) {
    stream.set_header(Map::Request, WAIT, wait.to_string().as_bytes());
}

/// R3: nothing was sent, so ask again who owns the key.
fn forget_unreachable(stream: &Stream, service: &Service) {
    let headers = (
        stream.request_number(INCARNATION),
        stream.request_number(EPOCH),
        key_of(stream),
    );
    if let (Some(incarnation), Some(as_of), Some(key)) = headers {
        let _ = service.refused(
            key.as_bytes(),
            ServerRefusal {
                incarnation,
                as_of,
                resent: false,
            },
        );
    }
}
