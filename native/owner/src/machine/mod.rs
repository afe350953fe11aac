//! The proxy's state machine: frames, commands and time in, effects out. No I/O, no clock, no
//! threads of its own; one thread at a time drives it. What it changes in the maps, workers see at
//! once.

mod asks;
mod claims;
mod feed;
mod keeping;
mod lease;
mod moves;
mod quiet;
mod resolved;
mod session;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use belay_proto::v1::frame::Body;
use belay_proto::v1::{Goodbye, Hosts, Pong};

use crate::answer::Refusal;
use crate::config::ProxyConfig;
use crate::entry::Entry;
use crate::process_state::Shared;
use crate::services::Services;
use crate::shard::Shard;
use crate::signal::{Command, Taken};
use crate::waker::{Level, StreamEvent, StreamId};

use asks::Asks;
use claims::Claims;
use keeping::Keeping;
use lease::Leases;
use moves::Moves;
use session::Session;

/// After so long without a connection, new keys are refused at once instead of parked; long enough
/// for a restart.
const SILENT_MS: u64 = 5_000;
/// Longest time between two ticks.
const TICK_MS_MAX: u64 = 1_000;
/// While streams are parked: how late a deadline may be noticed that another stream brought.
const TICK_PARKED_MS_MAX: u64 = 50;

/// To be carried out in order.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    Send(Body),
    Wake(StreamId, StreamEvent),
    /// At most once.
    Ready,
    Log(Level, String),
}

/// The connection cannot go on; the next one may.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub String);

pub(crate) struct Machine {
    config: ProxyConfig,
    process_id: [u8; 16],
    shared: Arc<Shared>,
    services: Arc<Services>,
    effects: Vec<Effect>,
    session: Session,
    leases: Leases,
    asks: Asks,
    claims: Claims,
    moves: Moves,
    keeping: Keeping,
    /// Of resolves and claims; unique in the process.
    last_request_id: u32,
    started_at: u64,
    ready: bool,
}

impl Machine {
    /// `process_id`: random, made once per process (P7).
    pub fn new(
        config: ProxyConfig,
        process_id: [u8; 16],
        shared: Arc<Shared>,
        services: Arc<Services>,
        now: u64,
    ) -> Machine {
        Machine {
            config,
            process_id,
            shared,
            services,
            effects: Vec::new(),
            session: Session::new(now),
            leases: Leases::default(),
            asks: Asks::default(),
            claims: Claims::default(),
            moves: Moves::default(),
            keeping: Keeping::default(),
            last_request_id: 0,
            started_at: now,
            ready: false,
        }
    }

    /// What is to be done since the last call.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// After an error the connection must be closed and `disconnected` called.
    pub fn on_frame(&mut self, now: u64, body: Body) -> Result<(), Broken> {
        match body {
            Body::Welcome(welcome) => self.welcome(now, welcome),
            Body::Problem(problem) => self.problem(now, &problem),
            Body::Ping(ping) => {
                self.send(Body::Pong(Pong { nonce: ping.nonce }));
                Ok(())
            }
            Body::Pong(_) => Ok(()),
            _ if !self.session.is_following() => Err(Broken(
                "the coordinator's first frame was not Welcome".to_owned(),
            )),
            Body::FeedBatch(batch) => self.feed_batch(now, batch),
            Body::FeedLease(lease) => {
                self.feed_lease(now, lease);
                Ok(())
            }
            Body::Resolved(resolved) => self.resolved(now, &resolved),
            Body::Minted(minted) => self.minted(now, &minted),
            other => Err(Broken(format!(
                "a frame that no proxy gets: {}",
                name_of(&other)
            ))),
        }
    }

    /// What workers asked for.
    pub fn on_taken(&mut self, now: u64, taken: Taken) {
        for command in taken.commands {
            match command {
                Command::Ask(shard) => self.ask(now, &shard, 0, false),
                Command::AskAbove(shard, revision) => self.ask(now, &shard, revision, false),
                Command::Refresh(shard) => self.ask(now, &shard, 0, true),
                Command::Mint {
                    shard,
                    incarnation,
                    stream,
                    deadline,
                } => {
                    self.claim(
                        now,
                        claims::Claim {
                            shard,
                            incarnation,
                            stream,
                            deadline,
                        },
                    );
                }
                Command::Hosts(service) => self.report_hosts(service),
            }
        }
        if taken.check_quiet {
            self.check_quiet_soon(now);
        }
    }

    /// Everything that is due.
    pub fn on_tick(&mut self, now: u64) {
        self.shared
            .set_silent(self.session.away_ms(now) > SILENT_MS);
        self.expire_parked(now);
        self.ask_again(now);
        self.expire_claims(now);
        self.end_leases(now);
        self.moves_due(now);
        self.renew_if_due(now);
        self.keep(now);
        if self.config.max_wait_ms > 0
            && now.saturating_sub(self.started_at) >= self.config.max_wait_ms
        {
            self.set_ready();
        }
    }

    /// When the next tick is due at the latest.
    pub fn wake_at(&self, now: u64) -> u64 {
        let mut at = now + TICK_MS_MAX;
        {
            let parking = self.shared.parking.lock();
            if let Some(deadline) = parking.next_deadline() {
                at = at.min(deadline).min(now + TICK_PARKED_MS_MAX);
            }
        }
        let max_wait = (!self.ready && self.config.max_wait_ms > 0)
            .then(|| self.started_at + self.config.max_wait_ms);
        let renewal = self
            .session
            .is_in_step()
            .then(|| self.leases.next_renewal());
        let retry = if self.session.is_in_step() {
            self.asks.next_retry()
        } else {
            None
        };
        [
            retry,
            self.claims.next_deadline(),
            self.moves.next_deadline(),
            self.next_lease_end(),
            renewal,
            max_wait,
        ]
        .into_iter()
        .flatten()
        .fold(at, u64::min)
    }

    /// P7: only when nothing is open does a goodbye end what this process may believe.
    pub fn goodbye(&mut self) -> bool {
        let idle = self.shared.streams.len() == 0
            && self.shared.parking.lock().len() == 0
            && self
                .services
                .all()
                .iter()
                .all(|service| service.servers.read().in_flight() == 0);
        if idle && self.session.is_following() {
            self.send(Body::Goodbye(Goodbye {}));
            return true;
        }
        false
    }

    /// After a fault of ours: believes nothing, resets every stream to an unguarded service (as at
    /// the end of the lease, P1) and starts as another process (P7), so that nothing is owed by
    /// what may be inconsistent.
    pub fn start_over(&mut self, process_id: [u8; 16], now: u64) {
        self.effects.clear();
        self.void_leases();
        for service in self
            .services
            .all()
            .iter()
            .filter(|service| !service.is_guarded())
        {
            let streams = self.shared.streams.all(|open| open.service == service.id);
            let reset = StreamEvent::Reset(Refusal::LeaseOver);
            self.effects.extend(
                streams
                    .into_iter()
                    .map(|open| Effect::Wake(open.stream, reset)),
            );
        }
        self.give_up_claims();
        let (shared, services) = (Arc::clone(&self.shared), Arc::clone(&self.services));
        let next = Machine::new(self.config.clone(), process_id, shared, services, now);
        let old = std::mem::replace(self, next);
        self.ready = old.ready;
        self.effects = old.effects;
    }

    fn send(&mut self, body: Body) {
        self.effects.push(Effect::Send(body));
    }

    fn wake(&mut self, stream: StreamId, event: StreamEvent) {
        self.effects.push(Effect::Wake(stream, event));
    }

    fn log(&mut self, level: Level, message: impl Into<String>) {
        self.effects.push(Effect::Log(level, message.into()));
    }

    fn set_ready(&mut self) {
        if !self.ready {
            self.ready = true;
            self.effects.push(Effect::Ready);
        }
    }

    fn next_request_id(&mut self) -> u32 {
        self.last_request_id = self.last_request_id.wrapping_add(1).max(1);
        self.last_request_id
    }

    /// Lets all streams go that wait for the shard: they look again.
    fn release(&mut self, shard: &Shard) {
        let streams = self.shared.parking.lock().release(shard);
        for stream in streams {
            self.wake(stream, StreamEvent::Answer);
        }
    }

    fn expire_parked(&mut self, now: u64) {
        let expired = self.shared.parking.lock().expire(now);
        for (stream, shard) in expired {
            let reason = if self.asks.is_moving(&shard) || self.holds_moving(&shard) {
                Refusal::Moving
            } else {
                Refusal::CoordinatorSilent
            };
            self.wake(stream, StreamEvent::Deadline(reason));
        }
    }

    fn holds_moving(&self, shard: &Shard) -> bool {
        self.services.get(shard.service).is_some_and(|service| {
            let hash = service.map.hash(&shard.key);
            service.map.with(hash, &shard.key, |entry| {
                entry.is_some_and(Entry::is_moving)
            })
        })
    }

    fn report_hosts(&mut self, service: u32) {
        if !self.session.is_following() {
            return;
        }
        let Some(state) = self.services.get(service) else {
            return;
        };
        let report = self.shared.hosts.lock().take_report(service);
        if let Some(addresses) = report {
            self.send(Body::Hosts(Hosts {
                service: state.name.to_string(),
                addresses,
            }));
        }
    }
}

fn name_of(body: &Body) -> String {
    let text = format!("{body:?}");
    text.split(['(', '{', ' '])
        .next()
        .unwrap_or_default()
        .to_owned()
}
