//! Metrics, with fixed label sets.
//!
//! Workers add to plain atomics; the main thread hands the differences to Envoy twice a second. So a
//! request pays one relaxed addition, and no label is looked up on its way.

use crate::abi::{Bootstrap, MetricId};
use belay_keys::Reason;
use belay_owner::{RESOLVE_BUCKETS_MS, Stats};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// How a request found its server, and what became of its attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The owner was known.
    Hit,
    /// Held, then sent to its owner.
    Parked,
    /// Without a key, to any active server.
    NoKey,
    /// To the server that the path names.
    Server,
    /// A further attempt went to a server.
    Rerouted,
    /// A server refused an attempt.
    Refused,
    /// An attempt went to the waiting room.
    Waited,
    /// A minted key was claimed.
    Minted,
    /// A WebSocket was closed because its key moved.
    Closed,
}

const OUTCOMES: [(Outcome, &str); 9] = [
    (Outcome::Hit, "hit"),
    (Outcome::Parked, "parked"),
    (Outcome::NoKey, "no_key"),
    (Outcome::Server, "server"),
    (Outcome::Rerouted, "rerouted"),
    (Outcome::Refused, "refused"),
    (Outcome::Waited, "waited"),
    (Outcome::Minted, "minted"),
    (Outcome::Closed, "closed"),
];

/// One service's counters.
pub struct ServiceMetrics {
    name: String,
    outcomes: [Counter; OUTCOMES.len()],
    answers: [Counter; Reason::ALL.len()],
}

#[derive(Default)]
struct Counter {
    value: AtomicU64,
    /// Handed to Envoy so far; only the main thread writes it.
    flushed: AtomicU64,
}

impl Counter {
    fn take(&self) -> u64 {
        let now = self.value.load(Relaxed);
        now - self.flushed.swap(now, Relaxed)
    }
}

impl ServiceMetrics {
    pub fn count(&self, outcome: Outcome) {
        self.outcomes[outcome as usize].value.fetch_add(1, Relaxed);
    }

    /// An answer that Belay made itself.
    pub fn answered(&self, reason: Reason) {
        self.answers[reason.index()].value.fetch_add(1, Relaxed);
    }
}

/// The process's counters.
#[derive(Default)]
pub struct Metrics {
    services: Mutex<Vec<Arc<ServiceMetrics>>>,
}

impl Metrics {
    /// The counters of a service; made when new, so only for names from configuration.
    #[must_use]
    pub fn service(&self, name: &str) -> Arc<ServiceMetrics> {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = services.iter().find(|known| known.name == name) {
            return Arc::clone(known);
        }
        let made = Arc::new(ServiceMetrics {
            name: name.to_owned(),
            outcomes: std::array::from_fn(|_| Counter::default()),
            answers: std::array::from_fn(|_| Counter::default()),
        });
        services.push(Arc::clone(&made));
        made
    }
}

type Reading = fn(&Stats) -> u64;

const GAUGES: [(&str, Reading); 11] = [
    ("map_entries", |stats| stats.map_entries),
    ("map_bytes", |stats| stats.map_bytes),
    ("feed_revision", |stats| stats.revision),
    ("feed_age_ms", |stats| known(stats.feed_age_ms)),
    ("lease_left_ms", |stats| known(stats.lease_left_ms)),
    ("parked", |stats| stats.parked),
    ("open_streams", |stats| stats.open_streams),
    ("services", |stats| stats.services),
    ("servers", |stats| stats.servers),
    ("connected", |stats| u64::from(stats.connected)),
    ("synced", |stats| u64::from(stats.synced)),
];

const COUNTERS: [(&str, Reading); 5] = [
    ("resolves", |stats| stats.resolves),
    ("placed", |stats| stats.placed),
    ("moves_seen", |stats| stats.moves_seen),
    ("evicted", |stats| stats.evicted),
    ("reconnects", |stats| stats.reconnects),
];

/// `u64::MAX` stands for «never» and would be a wild number in a graph.
fn known(value: u64) -> u64 {
    if value == u64::MAX { 0 } else { value }
}

/// Envoy's side: the metrics as defined there. Lives on the main thread.
pub struct Exported {
    requests: Option<MetricId>,
    answers: Option<MetricId>,
    panics: Option<MetricId>,
    resolve_bucket: Option<MetricId>,
    resolve_sum: Option<MetricId>,
    resolve_count: Option<MetricId>,
    gauges: [Option<MetricId>; GAUGES.len()],
    counters: [Option<MetricId>; COUNTERS.len()],
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    counters: [u64; COUNTERS.len()],
    buckets: [u64; RESOLVE_BUCKETS_MS.len() + 1],
    resolve_sum: u64,
    resolve_count: u64,
    panics: u64,
}

/// What a counter grew by; remembers the new value.
fn grown(last: &mut u64, now: u64) -> u64 {
    let by = now.saturating_sub(*last);
    *last = now;
    by
}

impl Exported {
    #[must_use]
    pub fn define(envoy: &Bootstrap) -> Self {
        Self {
            requests: envoy.define_counter("requests", &["service", "outcome"]),
            answers: envoy.define_counter("answers", &["service", "reason"]),
            panics: envoy.define_counter("panics", &[]),
            resolve_bucket: envoy.define_counter("resolve_ms_bucket", &["le"]),
            resolve_sum: envoy.define_counter("resolve_ms_sum", &[]),
            resolve_count: envoy.define_counter("resolve_ms_count", &[]),
            gauges: GAUGES.map(|(name, _)| envoy.define_gauge(name, &[])),
            counters: COUNTERS.map(|(name, _)| envoy.define_counter(name, &[])),
            last: Mutex::default(),
        }
    }

    /// Hands everything that changed since the last call to Envoy.
    pub fn flush(&self, envoy: &Bootstrap, metrics: &Metrics, stats: &Stats, panics: u64) {
        let services = metrics
            .services
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for service in services {
            for (at, (_, outcome)) in OUTCOMES.iter().enumerate() {
                let by = service.outcomes[at].take();
                add(envoy, self.requests, &[&service.name, outcome], by);
            }
            for reason in Reason::ALL {
                let by = service.answers[reason.index()].take();
                add(envoy, self.answers, &[&service.name, reason.code()], by);
            }
        }
        for (id, (_, read)) in self.gauges.iter().zip(GAUGES) {
            if let Some(id) = id {
                envoy.gauge(*id, &[], read(stats));
            }
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, (_, read)) in COUNTERS.iter().enumerate() {
            add(
                envoy,
                self.counters[at],
                &[],
                grown(&mut last.counters[at], read(stats)),
            );
        }
        add(envoy, self.panics, &[], grown(&mut last.panics, panics));
        self.flush_resolves(envoy, stats, &mut last);
    }

    /// As a Prometheus histogram: cumulative buckets.
    fn flush_resolves(&self, envoy: &Bootstrap, stats: &Stats, last: &mut Last) {
        let mut total = 0;
        for (at, count) in stats.resolve_ms.iter().enumerate() {
            total += count;
            let bound = RESOLVE_BUCKETS_MS
                .get(at)
                .map_or("+Inf".to_owned(), ToString::to_string);
            add(
                envoy,
                self.resolve_bucket,
                &[&bound],
                grown(&mut last.buckets[at], total),
            );
        }
        add(
            envoy,
            self.resolve_count,
            &[],
            grown(&mut last.resolve_count, total),
        );
        add(
            envoy,
            self.resolve_sum,
            &[],
            grown(&mut last.resolve_sum, stats.resolve_ms_sum),
        );
    }
}

fn add(envoy: &Bootstrap, id: Option<MetricId>, labels: &[&str], by: u64) {
    if let Some(id) = id
        && by > 0
    {
        envoy.count(id, labels, by);
    }
}

#[cfg(test)]
mod tests {
    use super::{Metrics, OUTCOMES, Outcome};

    #[test]
    fn outcomes_stand_at_their_index() {
        for (at, (outcome, _)) in OUTCOMES.iter().enumerate() {
            assert_eq!(*outcome as usize, at);
        }
    }

    #[test]
    fn a_counter_is_taken_once() {
        let service = Metrics::default().service("world");
        service.count(Outcome::Hit);
        service.count(Outcome::Hit);
        let counter = &service.outcomes[Outcome::Hit as usize];
        assert_eq!(counter.take(), 2);
        assert_eq!(counter.take(), 0);
    }
}
