//! An answer that carries a minted key is held until the coordinator has confirmed the key (A7).

use super::{Edge, Phase};
use crate::abi::{Body, BodyStatus, HeadersStatus, Map, Stream, TrailersStatus};
use crate::answer::Reply;
use crate::headers::{INCARNATION, RequestHeaders, View};
use crate::metrics::Outcome;
use crate::process;
use crate::wakers::Claim;
use belay_keys::minted::MintedPlace;
use belay_keys::{Key, Mint, Reason};

/// What the look at an answer led to.
enum Look {
    /// No key, or not ours to claim.
    Pass,
    More,
    /// Hold the answer.
    Claiming,
    /// Belay answered instead.
    Refused,
}

impl Edge {
    pub(super) fn look_for_minted(
        &self,
        stream: &mut Stream,
        minted: &MintedPlace,
        end: bool,
    ) -> HeadersStatus {
        let mint = minted.find(&View {
            stream,
            map: Map::Response,
        });
        match self.minted(stream, mint) {
            Look::Pass => HeadersStatus::Continue,
            Look::Claiming => HeadersStatus::StopAllAndWatermark,
            Look::Refused => HeadersStatus::StopIteration,
            Look::More if end => HeadersStatus::Continue,
            Look::More => {
                self.reader.replace(minted.reader().map(Box::new));
                self.phase.set(Phase::Reading);
                HeadersStatus::StopIteration
            }
        }
    }

    pub(super) fn read_minted(&self, stream: &mut Stream, end: bool) -> BodyStatus {
        let mint = {
            let mut reader = self.reader.borrow_mut();
            let Some(reader) = &mut *reader else {
                return BodyStatus::Continue;
            };
            let mut mint = Mint::NeedMore;
            for slice in stream.body(Body::ReceivedResponse) {
                mint = reader.feed(slice, false);
                if mint != Mint::NeedMore {
                    break;
                }
            }
            if end && mint == Mint::NeedMore {
                reader.feed(&[], true)
            } else {
                mint
            }
        };
        match self.minted(stream, mint) {
            Look::More if !end => BodyStatus::StopAndBuffer,
            Look::Pass | Look::More => {
                self.phase.set(Phase::Passing);
                BodyStatus::Continue
            }
            Look::Claiming => BodyStatus::StopAndWatermark,
            Look::Refused => BodyStatus::StopNoBuffer,
        }
    }

    /// The answer's body ended by trailers.
    pub(super) fn reading_ended(&self, stream: &mut Stream) -> TrailersStatus {
        let mint = self
            .reader
            .borrow_mut()
            .as_mut()
            .map_or(Mint::Absent, |reader| reader.feed(&[], true));
        match self.minted(stream, mint) {
            Look::Claiming | Look::Refused => TrailersStatus::StopIteration,
            Look::Pass | Look::More => {
                self.phase.set(Phase::Passing);
                TrailersStatus::Continue
            }
        }
    }

    fn minted(&self, stream: &mut Stream, mint: Mint) -> Look {
        match mint {
            Mint::Absent => Look::Pass,
            Mint::NeedMore => Look::More,
            Mint::Bad(_) => {
                // The server's fault: what stands there can be no key, or differs.
                self.reply(stream, Reply::of(Reason::MintConflict));
                Look::Refused
            }
            Mint::Found(key) => self.claim(stream, key),
        }
    }

    fn claim(&self, stream: &mut Stream, key: Key) -> Look {
        let parts = (
            self.route.get(),
            process::get(),
            stream.request_number(INCARNATION),
        );
        let (Some(route), Some(process), Some(incarnation)) = parts else {
            // Not an answer of a registered server.
            return Look::Pass;
        };
        let Some(service) = route.known.service() else {
            return Look::Pass;
        };
        let id = self.wake_id(stream, process);
        let wait_ms = u64::from(route.config.park_ms);
        self.phase.set(Phase::Claiming);
        if !service.mint(key.as_bytes(), incarnation, id, wait_ms) {
            self.forget_wakeable();
            self.reply(stream, Reply::of(Reason::MintUnconfirmed));
            return Look::Refused;
        }
        self.key.replace(Some(key));
        Look::Claiming
    }

    /// The coordinator has decided.
    pub(super) fn claimed(&self, stream: &mut Stream, claim: Claim) {
        self.forget_wakeable();
        match claim {
            Claim::Owned => {
                self.phase.set(Phase::Passing);
                self.count(Outcome::Minted, "minted");
                self.log(stream);
                stream.continue_encoding();
            }
            Claim::Conflict => self.reply(stream, Reply::of(Reason::MintConflict)),
            Claim::Unconfirmed => self.reply(stream, Reply::of(Reason::MintUnconfirmed)),
        }
    }
}
