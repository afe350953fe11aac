//! The feed lease: how long the maps may be believed (P1, S2).

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;

use belay_proto::v1::frame::Body;
use belay_proto::v1::{FeedLease, ProxyLoad, RenewFeedLease};

use crate::answer::Refusal;
use crate::service_state::ServiceState;
use crate::waker::StreamEvent;

use super::{Effect, Machine};

/// Renewals whose answer may still come.
const OUTSTANDING_MAX: usize = 64;
const INTERVAL_MS_MAX: u64 = 5_000;
const INTERVAL_MS_MIN: u64 = 50;

#[derive(Debug, Default)]
pub(super) struct Leases {
    last_nonce: u32,
    sent: VecDeque<(u32, u64)>,
    sent_at: u64,
    /// An answer that waits for its revision to be applied: (time before its renewal was sent,
    /// revision).
    early: Option<(u64, u64)>,
    /// Time before the newest renewal was sent whose answer counts.
    granted: Option<u64>,
    /// Smallest F of all services.
    feed_lease_ms_min: Option<u64>,
    /// Leases of unguarded services whose end was acted upon.
    ended: HashMap<u32, u64>,
}

impl Leases {
    /// P1: every min(F/3, 5 s).
    fn interval_ms(&self) -> u64 {
        self.feed_lease_ms_min.map_or(INTERVAL_MS_MAX, |f| {
            (f / 3).clamp(INTERVAL_MS_MIN, INTERVAL_MS_MAX)
        })
    }

    pub fn next_renewal(&self) -> u64 {
        self.sent_at + self.interval_ms()
    }

    /// Their answers were lost with the connection.
    pub fn forget_sent(&mut self) {
        self.sent.clear();
        self.early = None;
    }
}

impl Machine {
    pub(super) fn renew_if_due(&mut self, now: u64) {
        if self.session.is_in_step() && now >= self.leases.next_renewal() {
            self.renew(now);
        }
    }

    /// `now` was read before anything is handed to the transport (S2).
    pub(super) fn renew(&mut self, now: u64) {
        let leases = &mut self.leases;
        leases.last_nonce = leases.last_nonce.wrapping_add(1);
        leases.sent_at = now;
        leases.sent.push_back((leases.last_nonce, now));
        if leases.sent.len() > OUTSTANDING_MAX {
            leases.sent.pop_front();
        }
        let nonce = leases.last_nonce;
        let load = ProxyLoad {
            map_entries: self.shared.totals.entries(),
            map_bytes: self.shared.totals.bytes(),
            parked: u32::try_from(self.shared.parking.lock().len()).unwrap_or(u32::MAX),
            open_streams: u32::try_from(self.shared.streams.len()).unwrap_or(u32::MAX),
        };
        let dropped = self.moves.dropped(self.session.applied);
        self.send(Body::RenewFeedLease(RenewFeedLease {
            nonce,
            dropped,
            load: Some(load),
        }));
    }

    pub(super) fn feed_lease(&mut self, now: u64, lease: FeedLease) {
        let sent = &mut self.leases.sent;
        let Some(at) = sent.iter().position(|(nonce, _)| *nonce == lease.nonce) else {
            return;
        };
        // Answers come in order: the ones before it will not come any more.
        let Some((_, sent_at)) = sent.drain(..=at).next_back() else {
            return;
        };
        self.leases.early = Some((sent_at, lease.revision));
        self.count_lease(now);
    }

    /// P1: counts only when all entries up to its revision are applied.
    pub(super) fn count_lease(&mut self, _now: u64) {
        let Some((sent_at, revision)) = self.leases.early else {
            return;
        };
        if !self.session.is_in_step() || revision > self.session.applied {
            return;
        }
        self.leases.early = None;
        self.leases.granted = self.leases.granted.max(Some(sent_at));
        for service in self.services.all().iter() {
            self.extend_lease(service);
        }
        if self.shared.is_synced() {
            self.set_ready();
        }
    }

    /// From the newest renewal that counts, with the service's own F.
    pub(super) fn extend_lease(&self, service: &ServiceState) {
        if let Some(granted) = self.leases.granted
            && service.is_defined()
        {
            let facts = service.facts();
            service
                .set_lease_until((granted + facts.feed_lease_ms).saturating_sub(facts.margin_ms));
        }
    }

    /// After services changed.
    pub(super) fn set_lease_interval(&mut self) {
        let services = self.services.all();
        let defined = services.iter().filter(|service| service.is_defined());
        self.leases.feed_lease_ms_min = defined.map(|service| service.facts().feed_lease_ms).min();
    }

    /// A generation change voids what the old store's coordinator granted.
    pub(super) fn void_leases(&mut self) {
        self.leases.granted = None;
        for service in self.services.all().iter() {
            service.set_lease_until(0);
        }
    }

    /// P1: when the lease of an unguarded service ends, every stream to it is reset by then.
    pub(super) fn end_leases(&mut self, now: u64) {
        for service in self.services.all().iter() {
            let until = service.lease_until();
            if service.is_guarded()
                || until == 0
                || now < until
                || self.leases.ended.get(&service.id) == Some(&until)
            {
                continue;
            }
            self.leases.ended.insert(service.id, until);
            let streams = self.shared.streams.all(|open| open.service == service.id);
            self.effects.extend(
                streams
                    .into_iter()
                    .map(|open| Effect::Wake(open.stream, StreamEvent::Reset(Refusal::LeaseOver))),
            );
        }
    }

    pub(super) fn next_lease_end(&self) -> Option<u64> {
        let services = self.services.all();
        let ends = services
            .iter()
            .filter(|service| !service.is_guarded())
            .filter_map(|service| {
                let until = service.lease_until();
                (until > 0 && self.leases.ended.get(&service.id) != Some(&until)).then_some(until)
            });
        ends.min()
    }

    pub(super) fn note_revision(&mut self, revision: u64) {
        self.session.seen = self.session.seen.max(revision);
        self.shared
            .counters
            .revision
            .store(self.session.applied, Ordering::Relaxed);
    }
}
