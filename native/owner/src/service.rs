//! One service of a proxy, as filters and LB policies use it.

use std::sync::Arc;

use crate::answer::{
    AfterRefusal, Answer, Opened, Parked, Pick, Server, ServerAnswer, ServerRefusal, StreamKind,
};
use crate::clock::now_ms;
use crate::entry::Entry;
use crate::parking::Joined;
use crate::process_state::Shared;
use crate::service_state::{KEY_BYTES_MAX, ServiceState, is_too_old};
use crate::shard::Shard;
use crate::signal::Command;
use crate::streams::OpenStream;
use crate::waker::StreamId;

/// Longer than a drain of 10 s, so that no request of a planned move is lost (M5).
const PARK_MS_DEFAULT: u32 = 12_000;

/// One service of a `Proxy`, so that a request need not find it by name. Cheap to clone, valid for
/// ever: while the coordinator does not define the service, answers are `service-unknown`.
#[derive(Clone)]
pub struct Service {
    state: Arc<ServiceState>,
    shared: Arc<Shared>,
}

impl Service {
    pub(crate) fn new(state: Arc<ServiceState>, shared: Arc<Shared>) -> Service {
        Service { state, shared }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The service's number in this process.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.state.id
    }

    /// As the feed says; `false` while the service is unknown.
    #[must_use]
    pub fn is_guarded(&self) -> bool {
        self.state.is_guarded()
    }

    /// The longest time that a request may be held, in ms, as the feed says; 12 s while the service
    /// is unknown.
    #[must_use]
    pub fn park_ms(&self) -> u32 {
        match self.state.facts().park_ms {
            0 => PARK_MS_DEFAULT,
            known => known,
        }
    }

    /// What the map says now. Nothing is counted.
    #[must_use]
    pub fn lookup(&self, key: &[u8]) -> Answer {
        self.state.look(key, now_ms(), false)
    }

    /// For an attempt that begins in this very turn. For an unguarded service the pick is counted until its
    /// token is dropped.
    #[must_use]
    pub fn pick(&self, key: &[u8]) -> Answer {
        self.in_this_turn(|| self.state.look(key, now_ms(), true))
    }

    /// Picks by incarnation (server ids, keyless spreading): `Owner` with epoch 0, or `Refused`
    /// with `ServerGone`.
    #[must_use]
    pub fn pick_server(&self, incarnation: u64) -> Answer {
        self.in_this_turn(|| self.state.pick_server(incarnation, now_ms()))
    }

    /// Notes what `open_attempt` compares, before the clock and the map are read.
    fn in_this_turn(&self, look: impl FnOnce() -> Answer) -> Answer {
        let searches = self.shared.streams.searches();
        let mut answer = look();
        if let Answer::Owner(pick) = &mut answer {
            pick.searches = searches;
        }
        answer
    }

    /// What is known of a server id.
    #[must_use]
    pub fn server(&self, server_id: &str) -> ServerAnswer {
        self.state.server(server_id, now_ms())
    }

    /// Active servers in order of incarnation, for keyless spreading; empty when nothing may be
    /// believed. Count the chosen one with `pick_server`.
    #[must_use]
    pub fn active_servers(&self) -> Arc<[Arc<Server>]> {
        self.state.active_servers(now_ms())
    }

    /// Holds a stream until the key has an answer, for at most `wait_ms` (after which a `Deadline`
    /// event comes).
    #[must_use]
    pub fn park(&self, key: &[u8], stream: StreamId, wait_ms: u64) -> Parked {
        let now = now_ms();
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Parked::LookAgain;
        }
        let shard = Shard::new(self.state.id, key);
        let joined =
            self.shared
                .parking
                .lock()
                .join(shard.clone(), stream, now.saturating_add(wait_ms));
        match joined {
            Joined::Full => Parked::Full,
            Joined::Another => Parked::Waiting,
            Joined::First => self.first_parked(shard, stream, now),
        }
    }

    fn first_parked(&self, shard: Shard, stream: StreamId, now: u64) -> Parked {
        // The answer may have come between the look-up and now; whoever joined meanwhile is woken
        // by the ask.
        let answered = !matches!(
            self.state.look(&shard.key, now, false),
            Answer::Miss | Answer::Moving
        );
        if answered && self.shared.parking.lock().leave_if_alone(&shard, stream) {
            return Parked::LookAgain;
        }
        if self.shared.signal.send(Command::Ask(shard)) {
            return Parked::Waiting;
        }
        self.shared.parking.lock().leave(stream);
        Parked::Full
    }

    /// A server refused an attempt (R1). Counting tries (R2) is the caller's.
    #[must_use]
    pub fn refused(&self, key: &[u8], refusal: ServerRefusal) -> AfterRefusal {
        let (now, idle_ms) = (now_ms(), self.state.facts().idle_ms);
        let known = self.state.map.with(self.state.map.hash(key), key, |entry| {
            let usable =
                |entry: &&Entry| !entry.is_moving() && !is_too_old(entry.age_ms(now), idle_ms);
            entry
                .filter(usable)
                .map(|entry| (entry.epoch, entry.server))
        });
        let Some((epoch, index)) = known else {
            return AfterRefusal::Park;
        };
        let incarnation = self
            .state
            .servers
            .read()
            .by_index(index)
            .map(|record| record.server.incarnation);
        match incarnation {
            None => AfterRefusal::Park,
            Some(incarnation) if incarnation != refusal.incarnation => AfterRefusal::SendAgain,
            Some(_) if refusal.as_of < epoch && !refusal.resent => AfterRefusal::WaitAndResend,
            Some(_) => {
                self.state.map.distrust(key, epoch);
                let shard = Shard::new(self.state.id, key);
                // Dropped when the queue is full: then parking asks, without the bound, and the
                // server may refuse again.
                self.shared
                    .signal
                    .send(Command::AskAbove(shard, refusal.as_of));
                AfterRefusal::Park
            }
        }
    }

    /// For an answer that comes from the pick (`epoch`, `incarnation`): `true` when a newer epoch
    /// of the key is known and that server had not released it, so that the client must hear
    /// `outcome-unknown` instead (G7).
    #[must_use]
    pub fn is_outcome_unknown(&self, key: &[u8], epoch: u64, incarnation: u64) -> bool {
        // Asked for every answer, and expired servers are rare: the map is looked at last.
        if !self.state.servers.read().is_expired(incarnation) {
            return false;
        }
        let map = &self.state.map;
        map.with(map.hash(key), key, |entry| {
            entry.is_some_and(|entry| entry.epoch > epoch)
        })
    }

    /// Claims a minted key (A7); a `Minted` event always comes, at the latest after `wait_ms`.
    /// `false`: too many claims wait, no event comes, answer 503 `mint-unconfirmed`.
    #[must_use]
    pub fn mint(&self, key: &[u8], incarnation: u64, stream: StreamId, wait_ms: u64) -> bool {
        let deadline = now_ms().saturating_add(wait_ms);
        let shard = Shard::new(self.state.id, key);
        self.shared.signal.send(Command::Mint {
            shard,
            incarnation,
            stream,
            deadline,
        })
    }

    /// Registers a stream on (`epoch`, `incarnation`) so that it hears `CloseMoved` and `Reset`, and keeps
    /// its key from idling out (A5). Needed for WebSockets and long streams of any service. Without a
    /// key: `key` empty, `epoch` 0. Opening again replaces.
    #[must_use]
    pub fn open(
        &self,
        key: &[u8],
        epoch: u64,
        incarnation: u64,
        stream: StreamId,
        kind: StreamKind,
    ) -> Opened {
        let open = OpenStream {
            stream,
            service: self.state.id,
            epoch,
            incarnation,
            kind,
        };
        self.register(key, &open);
        self.recheck(key, &open)
    }

    /// The same for an attempt, right after its pick: *every* one of an unguarded service (P1).
    #[must_use]
    pub fn open_attempt(&self, key: &[u8], pick: &Pick, stream: StreamId) -> Opened {
        let open = OpenStream {
            stream,
            service: self.state.id,
            epoch: pick.epoch,
            incarnation: pick.server.incarnation,
            kind: StreamKind::Stream,
        };
        self.register(key, &open);
        if self.shared.streams.searches() == pick.searches {
            return Opened::Registered;
        }
        self.recheck(key, &open)
    }

    fn register(&self, key: &[u8], open: &OpenStream) {
        let shard = (!key.is_empty()).then(|| Shard::new(self.state.id, key));
        self.shared.streams.open(open.clone(), shard);
    }

    /// First registered, then looked at: a move that comes between the two finds it registered.
    fn recheck(&self, key: &[u8], open: &OpenStream) -> Opened {
        let still_holds = || {
            let moving_allowed = open.kind == StreamKind::Stream;
            let (epoch, incarnation) = (open.epoch, open.incarnation);
            self.state
                .still_holds(key, epoch, incarnation, moving_allowed, now_ms())
        };
        if self.state.is_guarded() || still_holds() {
            return Opened::Registered;
        }
        self.shared.streams.close(open.stream);
        self.shared.signal.check_quiet();
        Opened::Moved
    }

    /// The hosts that one worker's LB policy holds now (A4). Reported to the coordinator when all
    /// workers agree.
    pub fn hosts(&self, worker: u64, addresses: &[&str]) {
        let changed = self
            .shared
            .hosts
            .lock()
            .set(self.state.id, worker, addresses);
        self.hosts_changed(changed);
    }

    /// That LB policy is gone (its upstream cluster was replaced or the worker ends).
    pub fn hosts_gone(&self, worker: u64) {
        let changed = self.shared.hosts.lock().remove(self.state.id, worker);
        self.hosts_changed(changed);
    }

    fn hosts_changed(&self, changed: bool) {
        if changed {
            // Dropped when the queue is full: the next change, or the next session, reports it.
            self.shared.signal.send(Command::Hosts(self.state.id));
        }
    }
}
