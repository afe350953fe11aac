//! Resolves: one in flight per shard, asked again when the answer was «not yet» or the connection
//! was lost.

use std::collections::{BTreeSet, HashMap};

use belay_proto::v1::Resolve;
use belay_proto::v1::frame::Body;

use crate::counters::add;
use crate::shard::Shard;

use super::Machine;

/// Shards asked for at once, the background ones included; beyond it refreshes are left out.
const ASKS_MAX: usize = 131_072;

#[derive(Debug)]
pub(super) struct Ask {
    pub shard: Shard,
    /// While its answer is awaited on this connection.
    pub request_id: Option<u32>,
    /// Time before it was sent last.
    pub sent_at: u64,
    pub first_at: u64,
    retry_at: Option<u64>,
    pub min_revision: u64,
    pub refresh: bool,
    /// The last answer was «moving» or «not yet».
    pub moving: bool,
}

#[derive(Debug, Default)]
pub(super) struct Asks {
    by_shard: HashMap<Shard, Ask>,
    by_request: HashMap<u32, Shard>,
    retries: BTreeSet<(u64, Shard)>,
}

impl Asks {
    pub fn contains(&self, shard: &Shard) -> bool {
        self.by_shard.contains_key(shard)
    }

    pub fn is_moving(&self, shard: &Shard) -> bool {
        self.by_shard.get(shard).is_some_and(|ask| ask.moving)
    }

    pub fn next_retry(&self) -> Option<u64> {
        self.retries.first().map(|(at, _)| *at)
    }

    pub fn forget_sent(&mut self) {
        self.by_request.clear();
        for ask in self.by_shard.values_mut() {
            ask.request_id = None;
        }
    }

    /// The ask that this answer is for; it is no longer awaited.
    pub fn answered(&mut self, request_id: u32) -> Option<&mut Ask> {
        let shard = self.by_request.remove(&request_id)?;
        let ask = self.by_shard.get_mut(&shard)?;
        ask.request_id = None;
        Some(ask)
    }

    /// Nobody needs an answer any more.
    pub fn finish(&mut self, shard: &Shard) -> Option<Ask> {
        let ask = self.by_shard.remove(shard)?;
        if let Some(request_id) = ask.request_id {
            self.by_request.remove(&request_id);
        }
        self.unschedule(&ask);
        Some(ask)
    }

    pub fn schedule(&mut self, shard: &Shard, at: u64) {
        if let Some(ask) = self.by_shard.get_mut(shard) {
            if let Some(old) = ask.retry_at.replace(at) {
                self.retries.remove(&(old, shard.clone()));
            }
            self.retries.insert((at, shard.clone()));
        }
    }

    fn unschedule(&mut self, ask: &Ask) {
        if let Some(at) = ask.retry_at {
            self.retries.remove(&(at, ask.shard.clone()));
        }
    }

    fn due(&mut self, now: u64) -> Vec<Shard> {
        let mut due = Vec::new();
        while let Some((at, shard)) = self.retries.first().cloned() {
            if at > now {
                break;
            }
            self.retries.pop_first();
            if let Some(ask) = self.by_shard.get_mut(&shard) {
                ask.retry_at = None;
                due.push(shard);
            }
        }
        due
    }

    /// Of this service, those that wait to be asked again.
    pub fn waiting_of(&self, service: u32) -> Vec<Shard> {
        let waits = |ask: &&Ask| ask.shard.service == service && ask.retry_at.is_some();
        self.by_shard
            .values()
            .filter(waits)
            .map(|ask| ask.shard.clone())
            .collect()
    }
}

impl Machine {
    /// Asks unless an answer is awaited already. `above`: the answer must be at or above that
    /// revision.
    pub(super) fn ask(&mut self, now: u64, shard: &Shard, above: u64, refresh: bool) {
        if shard.key_text().is_none() {
            self.release(shard);
            return;
        }
        if let Some(ask) = self.asks.by_shard.get_mut(shard) {
            ask.refresh &= refresh;
            let raised = above > ask.min_revision;
            ask.min_revision = ask.min_revision.max(above);
            if raised && ask.request_id.is_none() {
                self.asks.schedule(shard, now);
            }
            return;
        }
        if refresh && self.asks.by_shard.len() >= ASKS_MAX {
            return;
        }
        let ask = Ask {
            shard: shard.clone(),
            request_id: None,
            sent_at: now,
            first_at: now,
            retry_at: None,
            min_revision: above,
            refresh,
            moving: false,
        };
        self.asks.by_shard.insert(shard.clone(), ask);
        if self.holds_moving(shard) {
            // M2: ShardOwner or ShardFree will tell; asking is for the case that it got lost.
            if let Some(ask) = self.asks.by_shard.get_mut(shard) {
                ask.moving = true;
            }
            self.asks
                .schedule(shard, now + super::resolved::RETRY_MS_MAX);
        } else {
            self.send_ask(now, shard);
        }
    }

    pub(super) fn send_ask(&mut self, now: u64, shard: &Shard) {
        if !self.session.is_in_step() {
            return;
        }
        let request_id = self.next_request_id();
        let (Some(service), Some(key), Some(ask)) = (
            self.services.get(shard.service),
            shard.key_text(),
            self.asks.by_shard.get_mut(shard),
        ) else {
            return;
        };
        if ask.request_id.is_some() {
            return;
        }
        ask.request_id = Some(request_id);
        ask.sent_at = now;
        let resolve = Resolve {
            request_id,
            service: service.name.to_string(),
            key,
            min_revision: ask.min_revision,
            refresh: ask.refresh,
            zone: self.config.zone.clone(),
        };
        self.asks.by_request.insert(request_id, shard.clone());
        add(&self.shared.counters.resolves, 1);
        self.send(Body::Resolve(resolve));
    }

    pub(super) fn ask_again(&mut self, now: u64) {
        if !self.session.is_in_step() {
            return;
        }
        for shard in self.asks.due(now) {
            self.send_ask(now, &shard);
        }
    }

    /// A new conversation: everything that waits is asked for, whatever was asked before.
    pub(super) fn ask_all(&mut self, now: u64) {
        let parked = self.shared.parking.lock().shards();
        for shard in parked {
            self.ask(now, &shard, 0, false);
        }
        let unsent: Vec<Shard> = self
            .asks
            .by_shard
            .values()
            .filter(|ask| ask.request_id.is_none())
            .map(|ask| ask.shard.clone())
            .collect();
        for shard in unsent {
            self.send_ask(now, &shard);
        }
    }

    /// The coordinator did not want to answer now.
    pub(super) fn refused_ask(&mut self, now: u64, request_id: u32, retry_after_ms: u32) {
        if let Some(shard) = self.asks.answered(request_id).map(|ask| ask.shard.clone()) {
            let wait = u64::from(retry_after_ms).clamp(100, super::resolved::RETRY_MS_MAX);
            self.asks.schedule(&shard, now + wait);
        }
    }
}
