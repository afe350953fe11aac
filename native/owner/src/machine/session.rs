//! One conversation with the coordinator after another: Hello, Welcome, what was seen (P2, F1, T4,
//! G2).

use belay_proto::v1::frame::Body;
use belay_proto::v1::{FeedEntry, Hello, Problem, Role, Welcome};

use crate::counters::add;
use crate::waker::Level;

use super::{Broken, Machine};

const PROTOCOL_VERSION: u32 = 1;

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Down,
    /// Hello is sent.
    Greeting,
    Following,
}

#[derive(Debug)]
pub(super) struct Session {
    phase: Phase,
    /// Of the store whose entries are applied; empty before the first snapshot.
    pub generation: Vec<u8>,
    /// Of the store that this session's coordinator has.
    pub welcomed_generation: Vec<u8>,
    pub term: u64,
    /// Revision of the last batch applied.
    pub applied: u64,
    /// Highest revision in any frame of this generation (T4).
    pub seen: u64,
    /// What this session's Hello named; a first batch may name it as its previous one.
    pub resumed_from: Option<u64>,
    /// Only a snapshot may come next.
    pub needs_snapshot: bool,
    /// Entries of a snapshot whose end has not come.
    pub staged: Option<Vec<FeedEntry>>,
    down_since: u64,
}

impl Session {
    pub fn new(now: u64) -> Session {
        Session {
            phase: Phase::Down,
            generation: Vec::new(),
            welcomed_generation: Vec::new(),
            term: 0,
            applied: 0,
            seen: 0,
            resumed_from: None,
            needs_snapshot: true,
            staged: None,
            down_since: now,
        }
    }

    pub fn is_following(&self) -> bool {
        self.phase == Phase::Following
    }

    /// How long there has been no conversation.
    pub fn away_ms(&self, now: u64) -> u64 {
        if self.is_following() {
            0
        } else {
            now.saturating_sub(self.down_since)
        }
    }

    /// Everything up to the last batch is applied, and the batch was of this session's store.
    pub fn is_in_step(&self) -> bool {
        self.is_following() && !self.needs_snapshot && self.staged.is_none()
    }
}

impl Machine {
    /// A connection stands: introduce ourselves.
    pub fn connected(&mut self) {
        let session = &mut self.session;
        session.phase = Phase::Greeting;
        session.staged = None;
        session.resumed_from =
            (!session.needs_snapshot).then_some(session.seen.max(session.applied));
        let hello = Hello {
            protocol_version: PROTOCOL_VERSION,
            role: Role::Proxy.into(),
            name: self.config.name.clone(),
            process_id: self.process_id.to_vec(),
            // P2: without a generation a snapshot comes.
            generation: if session.needs_snapshot {
                Vec::new()
            } else {
                session.generation.clone()
            },
            revision: session.resumed_from.unwrap_or(0),
            term: session.term,
            token: self.config.token.clone(),
            software: self.config.software.clone(),
            pool: self.config.pool.clone(),
        };
        self.send(Body::Hello(hello));
    }

    /// The connection is gone. It ends nothing (P7): leases run on, streams stay parked.
    pub fn disconnected(&mut self, now: u64) {
        if self.session.is_following() {
            self.session.down_since = now;
            add(&self.shared.counters.reconnects, 1);
        }
        self.session.phase = Phase::Down;
        self.session.staged = None;
        self.shared
            .counters
            .connected
            .store(false, std::sync::atomic::Ordering::Relaxed);
        self.leases.forget_sent();
        self.asks.forget_sent();
    }

    pub(super) fn welcome(&mut self, now: u64, welcome: Welcome) -> Result<(), Broken> {
        let session = &mut self.session;
        if session.phase != Phase::Greeting {
            return Err(Broken("a second Welcome".to_owned()));
        }
        if welcome.generation.is_empty() {
            return Err(Broken(
                "a Welcome without the store's generation".to_owned(),
            ));
        }
        let same = session.generation == welcome.generation;
        if same && welcome.term < session.term {
            return Err(Broken(format!(
                "a coordinator of term {} although {} was seen: it is deposed",
                welcome.term, session.term
            )));
        }
        if !same {
            session.needs_snapshot = true;
        }
        session.term = welcome.term;
        session.welcomed_generation = welcome.generation;
        session.phase = Phase::Following;
        let resumes = !session.needs_snapshot;
        let counters = &self.shared.counters;
        counters
            .connected
            .store(true, std::sync::atomic::Ordering::Relaxed);
        counters
            .term
            .store(welcome.term, std::sync::atomic::Ordering::Relaxed);
        self.shared.set_silent(false);
        if resumes {
            self.say_dropped();
            self.say_quiet_again(now);
            self.renew(now);
        }
        self.ask_all(now);
        self.claim_all();
        let services = self.shared.hosts.lock().forget_reports();
        for service in services {
            self.report_hosts(service);
        }
        Ok(())
    }

    pub(super) fn problem(&mut self, now: u64, problem: &Problem) -> Result<(), Broken> {
        let text = format!("the coordinator says {}: {}", problem.code, problem.message);
        if problem.fatal {
            return Err(Broken(text));
        }
        self.log(Level::Warn, text);
        if problem.request_id != 0 {
            self.refused_ask(now, problem.request_id, problem.retry_after_ms);
        }
        Ok(())
    }

    /// P2: what came does not follow from what is known; only a snapshot helps.
    pub(super) fn out_of_step(&mut self, why: String) -> Broken {
        self.session.needs_snapshot = true;
        Broken(why)
    }
}
