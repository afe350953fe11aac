//! Answers to resolves (P2, P5, I9, R1).

use belay_proto::v1::{ResolveOutcome, Resolved};

use crate::answer::Refusal;
use crate::counters::add;
use crate::part::NewAnswer;
use crate::service_state::ServiceState;
use crate::shard::Shard;

use super::moves::Departure;
use super::{Broken, Machine};

/// Longest wait before a shard is asked for again whose answer was «moving» or «not yet».
pub(super) const RETRY_MS_MAX: u64 = 1_000;
const RETRY_MS_MIN: u64 = 10;

/// An owner as the coordinator named it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub epoch: u64,
    pub incarnation: u64,
    /// From when on the answer ages (A5).
    pub since: u64,
}

impl Machine {
    pub(super) fn resolved(&mut self, now: u64, resolved: &Resolved) -> Result<(), Broken> {
        let applied = self.session.applied;
        if !self.session.is_in_step() {
            // F2: a snapshot has begun since it was asked; after it everything is asked for anew.
            self.asks.answered(resolved.request_id);
            return Ok(());
        }
        if resolved.revision < applied {
            // P2: then the stream is not in commit order.
            let why = format!(
                "an answer of revision {} after an entry of {applied}",
                resolved.revision
            );
            return Err(self.out_of_step(why));
        }
        self.note_revision(resolved.revision);
        let Some(ask) = self.asks.answered(resolved.request_id) else {
            return Ok(());
        };
        let (shard, sent_at, first_at) = (ask.shard.clone(), ask.sent_at, ask.first_at);
        let Some(service) = self.services.get(shard.service) else {
            return Ok(());
        };
        if *service.name != *resolved.service || *shard.key != *resolved.key.as_bytes() {
            return Err(Broken(
                "an answer for another shard than was asked for".to_owned(),
            ));
        }
        if resolved.revision < ask.min_revision {
            self.asks.schedule(&shard, now + RETRY_MS_MIN);
            return Ok(());
        }
        let outcome = resolved.outcome();
        ask.moving = matches!(outcome, ResolveOutcome::Moving | ResolveOutcome::NotYet);
        match outcome {
            ResolveOutcome::Owner => {
                let owner = Owner {
                    epoch: resolved.epoch,
                    incarnation: resolved.incarnation,
                    since: sent_at,
                };
                if !self.learn_owner(now, &service, &shard, owner) {
                    return Err(self.out_of_step(format!(
                        "an answer names incarnation {}, which the feed did not",
                        resolved.incarnation
                    )));
                }
                add(&self.shared.counters.placed, u64::from(resolved.placed));
            }
            ResolveOutcome::Moving | ResolveOutcome::NotYet => {
                self.leave_for_now(now, &service, &shard, outcome == ResolveOutcome::Moving);
                if self.shared.parking.lock().is_waiting(&shard) {
                    let wait = match u64::from(resolved.retry_after_ms) {
                        0 => RETRY_MS_MAX,
                        wait => wait.clamp(RETRY_MS_MIN, RETRY_MS_MAX),
                    };
                    self.asks.schedule(&shard, now + wait);
                } else {
                    self.asks.finish(&shard);
                }
                return Ok(());
            }
            other => self.learn_refusal(now, &service, &shard, other, resolved.retry_after_ms),
        }
        self.shared.counters.resolved(now.saturating_sub(first_at));
        self.asks.finish(&shard);
        self.release(&shard);
        Ok(())
    }

    /// Applies an owner unless a newer epoch is known (I9); `false` if its incarnation is not.
    pub(super) fn learn_owner(
        &mut self,
        now: u64,
        service: &ServiceState,
        shard: &Shard,
        owner: Owner,
    ) -> bool {
        let Some(index) = service
            .servers
            .read()
            .by_incarnation(owner.incarnation)
            .map(|record| record.index)
        else {
            return false;
        };
        let (totals, max) = (&self.shared.totals, self.shared.limits.entries);
        let new = NewAnswer {
            epoch: owner.epoch,
            server: index,
            now_ms: owner.since,
        };
        let replaced = service.map.answer(&shard.key, new, totals, max);
        if let Some(replaced) = replaced
            && replaced.epoch < owner.epoch
        {
            // We missed its move: what is open on the old answer has to go (I1u).
            self.superseded(now, service, shard, owner.epoch);
        }
        true
    }

    /// The shard has no owner that could be used now.
    fn leave_for_now(&mut self, now: u64, service: &ServiceState, shard: &Shard, moving: bool) {
        if !moving {
            service.map.set_stale(&shard.key);
            return;
        }
        let departure = Departure {
            epoch: u64::MAX,
            incarnation: None,
            drain_ms: None,
        };
        self.depart(now, service, shard, departure);
    }

    fn learn_refusal(
        &mut self,
        now: u64,
        service: &ServiceState,
        shard: &Shard,
        outcome: ResolveOutcome,
        retry_after_ms: u32,
    ) {
        let refusal = match outcome {
            ResolveOutcome::Full => Refusal::Full,
            ResolveOutcome::UnknownKey => Refusal::UnknownKey,
            ResolveOutcome::ServiceUnknown => Refusal::ServiceUnknown,
            _ => Refusal::NoServer,
        };
        service.map.set_stale(&shard.key);
        self.shared.counters.refused(refusal);
        let ms = if retry_after_ms == 0 {
            crate::back_off::BACK_OFF_MS_MAX
        } else {
            retry_after_ms
        };
        self.shared
            .back_off
            .lock()
            .put(shard.clone(), refusal, now, ms);
    }
}
