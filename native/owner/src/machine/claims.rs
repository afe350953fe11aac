//! Claims of minted keys (A7).

use std::collections::{BTreeSet, HashMap};

use belay_proto::v1::frame::Body;
use belay_proto::v1::{Mint, MintOutcome, Minted};

use crate::shard::Shard;
use crate::waker::{MintResult, StreamEvent, StreamId};

use super::resolved::Owner;
use super::{Broken, Machine};

#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub shard: Shard,
    pub incarnation: u64,
    pub stream: StreamId,
    pub deadline: u64,
}

#[derive(Debug, Default)]
pub(super) struct Claims {
    waiting: HashMap<u32, (Claim, u64)>,
    deadlines: BTreeSet<(u64, u32)>,
}

impl Claims {
    pub fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    fn take(&mut self, request_id: u32) -> Option<(Claim, u64)> {
        let (claim, sent_at) = self.waiting.remove(&request_id)?;
        self.deadlines.remove(&(claim.deadline, request_id));
        Some((claim, sent_at))
    }
}

impl Machine {
    pub(super) fn claim(&mut self, now: u64, claim: Claim) {
        if self.claims.waiting.len() >= self.shared.limits.mints || claim.shard.key_text().is_none()
        {
            self.wake(claim.stream, StreamEvent::Minted(MintResult::TimedOut));
            return;
        }
        let request_id = self.next_request_id();
        self.claims.deadlines.insert((claim.deadline, request_id));
        self.claims.waiting.insert(request_id, (claim, now));
        self.send_claim(request_id);
    }

    fn send_claim(&mut self, request_id: u32) {
        if !self.session.is_in_step() {
            return;
        }
        let Some((claim, _)) = self.claims.waiting.get(&request_id) else {
            return;
        };
        let (Some(service), Some(key)) = (
            self.services.get(claim.shard.service),
            claim.shard.key_text(),
        ) else {
            return;
        };
        let incarnation = claim.incarnation;
        self.send(Body::Mint(Mint {
            request_id,
            service: service.name.to_string(),
            key,
            incarnation,
        }));
    }

    /// A new conversation: claims are idempotent, so all are made again.
    pub(super) fn claim_all(&mut self) {
        let mut ids: Vec<u32> = self.claims.waiting.keys().copied().collect();
        ids.sort_unstable();
        for request_id in ids {
            self.send_claim(request_id);
        }
    }

    pub(super) fn minted(&mut self, now: u64, minted: &Minted) -> Result<(), Broken> {
        if minted.revision < self.session.applied {
            let why = format!(
                "a claim answered at revision {} after {}",
                minted.revision, self.session.applied
            );
            return Err(self.out_of_step(why));
        }
        self.note_revision(minted.revision);
        let Some((claim, sent_at)) = self.claims.take(minted.request_id) else {
            return Ok(());
        };
        let result = match minted.outcome() {
            MintOutcome::Ok => {
                if let Some(service) = self.services.get(claim.shard.service) {
                    let owner = Owner {
                        epoch: minted.epoch,
                        incarnation: claim.incarnation,
                        since: sent_at,
                    };
                    // If the server has ended meanwhile the claim still stands: the next request
                    // finds that out.
                    self.learn_owner(now, &service, &claim.shard, owner);
                    self.shared.back_off.lock().remove(&claim.shard);
                    self.asks.finish(&claim.shard);
                    self.release(&claim.shard);
                }
                MintResult::Owned {
                    epoch: minted.epoch,
                }
            }
            MintOutcome::Conflict => MintResult::Conflict,
            MintOutcome::ServerGone => MintResult::ServerGone,
            MintOutcome::ServiceUnknown | MintOutcome::Unspecified => MintResult::ServiceUnknown,
        };
        self.wake(claim.stream, StreamEvent::Minted(result));
        Ok(())
    }

    /// No claim will be answered: this machine ends.
    pub(super) fn give_up_claims(&mut self) {
        self.claims.deadlines.clear();
        let claims = std::mem::take(&mut self.claims.waiting);
        for (claim, _) in claims.into_values() {
            self.wake(claim.stream, StreamEvent::Minted(MintResult::TimedOut));
        }
    }

    pub(super) fn expire_claims(&mut self, now: u64) {
        while let Some((at, request_id)) = self.claims.deadlines.first().copied() {
            if at > now {
                break;
            }
            self.claims.deadlines.pop_first();
            if let Some((claim, _)) = self.claims.waiting.remove(&request_id) {
                self.wake(claim.stream, StreamEvent::Minted(MintResult::TimedOut));
            }
        }
    }
}
