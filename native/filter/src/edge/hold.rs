//! Holding a request until its key has an owner: on a miss, and while the key moves (M2).

use super::request::Verdict;
use super::{Edge, Phase, Route};
use crate::abi::Stream;
use crate::answer::Reply;
use crate::last_pick;
use crate::metrics::Outcome;
use crate::process;
use belay_keys::{Key, Reason};
use belay_owner::{Answer, Parked};

/// Looks at the map in one go, while it changes under us.
const LOOKS_MAX: u32 = 8;

impl Edge {
    /// Looks the key up; parks the stream where it has to be waited for.
    pub(super) fn look(&self, stream: &mut Stream, route: &Route, key: &Key) -> Verdict {
        let (Some(service), Some(process)) = (route.known.service(), process::get()) else {
            return self.refuse(stream, Reason::NoSnapshot);
        };
        for _ in 0..LOOKS_MAX {
            let answer = service.pick(key.as_bytes());
            match answer {
                Answer::Owner(pick) => {
                    last_pick::find(service, key.clone(), pick);
                    return Verdict::Go;
                }
                Answer::Refused {
                    reason,
                    retry_after_ms,
                } => {
                    let mut reply = Reply::refusal(reason, retry_after_ms);
                    if reply.reason == Reason::UnknownKey {
                        reply.status = route.config.unknown_key_status;
                    }
                    self.reply(stream, reply);
                    return Verdict::Answered;
                }
                Answer::Miss | Answer::Moving => {}
            }
            let left = self.deadline_ms.get().saturating_sub(process::now_ms());
            if left == 0 {
                let moving = matches!(answer, Answer::Moving);
                let reason = if moving {
                    Reason::Moving
                } else {
                    Reason::CoordinatorSilent
                };
                return self.refuse(stream, reason);
            }
            let id = self.wake_id(stream, process);
            match service.park(key.as_bytes(), id, left) {
                Parked::Waiting => {
                    self.phase.set(Phase::Held);
                    return Verdict::Hold;
                }
                Parked::LookAgain => {}
                Parked::Full => return self.refuse(stream, Reason::ParkFull),
            }
        }
        self.refuse(stream, Reason::Moving)
    }

    /// The key of a held request has news.
    pub(super) fn look_again(&self, stream: &mut Stream) {
        let (Some(route), Some(key)) = (self.route.get(), self.key.borrow().clone()) else {
            return;
        };
        if self.look(stream, route, &key) == Verdict::Go {
            self.forget_wakeable();
            self.phase.set(Phase::Passing);
            self.count(Outcome::Parked, "parked");
            stream.continue_decoding();
            // Envoy went on within that call, or not at all.
            last_pick::clear();
        }
    }
}
