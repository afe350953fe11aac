//! Shards that leave their owner and servers that ended, for unguarded services: whose streams must
//! go, and when none is left (M2, M4, P3). Guarded servers see to their streams themselves.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use belay_proto::v1::Quiet;

use crate::answer::{Refusal, StreamKind};
use crate::servers::Record;
use crate::service_state::ServiceState;
use crate::shard::Shard;
use crate::shard_map::Held;
use crate::streams::OpenStream;
use crate::waker::StreamEvent;

use super::Machine;

/// Drain time of a move of which only its being under way is known.
const DRAIN_MS_DEFAULT: u32 = 10_000;

/// A shard that leaves its owner.
#[derive(Clone, Copy)]
pub(super) struct Departure {
    /// The epoch that ends; `u64::MAX`: whichever we hold.
    pub epoch: u64,
    /// `None`: not told.
    pub incarnation: Option<u64>,
    pub drain_ms: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// With the epoch that leaves: a later move of the shard has a deadline of its own.
    Shard(Shard, u64),
    Server(u64),
}

#[derive(Debug)]
pub(super) struct Draining {
    pub epoch: u64,
    pub incarnation: u64,
}

#[derive(Debug)]
pub(super) struct Ending {
    pub service: Arc<ServiceState>,
    pub record: Arc<Record>,
    /// A snapshot does not name it: its acknowledgement says that nothing is open to it any more.
    holds_dropped: bool,
}

impl std::fmt::Debug for ServiceState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "service {}", self.name)
    }
}

#[derive(Debug, Default)]
pub(super) struct Moves {
    pub draining: HashMap<Shard, Draining>,
    pub ending: HashMap<u64, Ending>,
    deadlines: BTreeSet<(u64, Due)>,
    /// What was said of late, and when.
    pub said: VecDeque<(u64, Quiet)>,
    /// When to look for what became quiet.
    pub check_at: Option<u64>,
    pub checked_at: u64,
    /// Up to here nothing older remains (P3).
    dropped: u64,
}

impl Moves {
    pub fn next_deadline(&self) -> Option<u64> {
        [self.deadlines.first().map(|(at, _)| *at), self.check_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// What may be acknowledged, given that everything up to `applied` is.
    pub fn dropped(&mut self, applied: u64) -> u64 {
        if !self.ending.values().any(|ending| ending.holds_dropped) {
            self.dropped = applied;
        }
        self.dropped
    }

    pub fn is_held(&self) -> bool {
        self.ending.values().any(|ending| ending.holds_dropped)
    }

    pub fn wanted(&self) -> usize {
        self.draining.len() + self.ending.len()
    }
}

impl Machine {
    /// M2: from here on nobody picks on the old answer. Tells WebSockets to close, others at the
    /// drain deadline.
    pub(super) fn depart(
        &mut self,
        now: u64,
        service: &ServiceState,
        shard: &Shard,
        departure: Departure,
    ) {
        let held = service.map.set_moving(&shard.key, departure.epoch);
        if service.is_guarded() || held == Held::Newer {
            return;
        }
        let epoch = match held {
            _ if departure.epoch < u64::MAX => departure.epoch,
            Held::Yes { epoch } => epoch,
            _ => return,
        };
        let incarnation = departure
            .incarnation
            .unwrap_or_else(|| incarnation_of(service, shard));
        let drain_ms = departure.drain_ms.unwrap_or(DRAIN_MS_DEFAULT);
        if let Some(old) = self
            .moves
            .draining
            .insert(shard.clone(), Draining { epoch, incarnation })
            && old.epoch == epoch
        {
            return;
        }
        self.moves
            .deadlines
            .insert((now + u64::from(drain_ms), Due::Shard(shard.clone(), epoch)));
        self.want_quiet();
        for open in self.shared.streams.of_shard(shard) {
            if open.kind == StreamKind::WebSocket && open.epoch <= epoch {
                self.wake(open.stream, StreamEvent::CloseMoved);
            }
        }
    }

    /// M1: every answer naming it is void. Sockets close; the rest is reset at once if the server
    /// may still act.
    pub(super) fn server_ended(
        &mut self,
        now: u64,
        service: &Arc<ServiceState>,
        record: Arc<Record>,
        end: End,
    ) {
        if service.is_guarded() {
            return;
        }
        let incarnation = record.server.incarnation;
        for open in self.streams_to(service, incarnation) {
            let event = match open.kind {
                _ if end.holds_dropped => StreamEvent::Reset(Refusal::OutcomeUnknown),
                StreamKind::WebSocket => StreamEvent::CloseMoved,
                StreamKind::Stream if end.grace_ms == 0 => {
                    StreamEvent::Reset(Refusal::OutcomeUnknown)
                }
                StreamKind::Stream => continue,
            };
            self.wake(open.stream, event);
        }
        let ending = Ending {
            service: Arc::clone(service),
            record,
            holds_dropped: end.holds_dropped,
        };
        self.moves.ending.insert(incarnation, ending);
        self.moves.deadlines.insert((
            now + u64::from(end.grace_ms.max(1_000)),
            Due::Server(incarnation),
        ));
        self.want_quiet();
    }

    /// A snapshot's acknowledgement says that nothing is open to an incarnation that it does not
    /// name, to those either whose end was known before and whose streams were still draining.
    pub(super) fn end_drains_of_servers(&mut self) {
        for ending in self.moves.ending.values_mut() {
            ending.holds_dropped = true;
        }
        let ending: Vec<(Arc<ServiceState>, u64)> = self
            .moves
            .ending
            .iter()
            .map(|(incarnation, ending)| (Arc::clone(&ending.service), *incarnation))
            .collect();
        for (service, incarnation) in ending {
            for open in self.streams_to(&service, incarnation) {
                self.wake(open.stream, StreamEvent::Reset(Refusal::OutcomeUnknown));
            }
        }
    }

    /// A newer epoch is known: whatever is open on an older one of this shard is reset (I1u).
    pub(super) fn superseded(
        &mut self,
        _now: u64,
        service: &ServiceState,
        shard: &Shard,
        epoch: u64,
    ) {
        self.moves.draining.remove(shard);
        self.want_quiet();
        if service.is_guarded() {
            return;
        }
        for open in self.shared.streams.of_shard(shard) {
            if open.epoch < epoch {
                let event = match open.kind {
                    StreamKind::WebSocket => StreamEvent::CloseMoved,
                    StreamKind::Stream => StreamEvent::Reset(Refusal::Moving),
                };
                self.wake(open.stream, event);
            }
        }
    }

    /// Drain deadlines: what is left is reset (M2).
    pub(super) fn moves_due(&mut self, now: u64) {
        while let Some((at, due)) = self.moves.deadlines.first().cloned() {
            if at > now {
                break;
            }
            self.moves.deadlines.pop_first();
            let left: Vec<OpenStream> = match &due {
                Due::Shard(shard, epoch) => match self.moves.draining.get(shard) {
                    Some(draining) if draining.epoch == *epoch => {
                        let epoch = *epoch;
                        self.shared
                            .streams
                            .of_shard(shard)
                            .into_iter()
                            .filter(|open| open.epoch <= epoch)
                            .collect()
                    }
                    _ => continue,
                },
                Due::Server(incarnation) => match self.moves.ending.get(incarnation) {
                    Some(ending) => self.streams_to(&Arc::clone(&ending.service), *incarnation),
                    None => continue,
                },
            };
            for open in left {
                self.wake(open.stream, StreamEvent::Reset(Refusal::Moving));
            }
        }
        if self.moves.check_at.is_some_and(|at| at <= now) {
            self.check_quiet(now);
        }
    }

    pub(super) fn streams_to(&self, service: &ServiceState, incarnation: u64) -> Vec<OpenStream> {
        self.shared
            .streams
            .all(|open| open.service == service.id && open.incarnation == incarnation)
    }
}

fn incarnation_of(service: &ServiceState, shard: &Shard) -> u64 {
    let hash = service.map.hash(&shard.key);
    let index = service
        .map
        .with(hash, &shard.key, |entry| entry.map(|entry| entry.server));
    let servers = service.servers.read();
    index
        .and_then(|index| servers.by_index(index))
        .map_or(0, |record| record.server.incarnation)
}

/// How a server's incarnation ended.
#[derive(Clone, Copy)]
pub(super) struct End {
    /// What is under way may end within this time; 0: the server may be alive and unaware (G6).
    pub grace_ms: u32,
    /// It is missing from a snapshot: nothing is acknowledged before its streams are gone.
    pub holds_dropped: bool,
}
