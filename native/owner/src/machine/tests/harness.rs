//! A machine, its maps, and a coordinator that the test plays by hand.

use std::sync::Arc;

use belay_proto::v1::feed_entry::Entry;
use belay_proto::v1::frame::Body;
use belay_proto::v1::{
    After, FeedBatch, FeedEntry, FeedLease, Resolve, ResolveOutcome, Resolved, ServerEndedEntry,
    ServerEntry, ServerState, ServiceEntry, Welcome,
};

use crate::answer::{Answer, StreamKind};
use crate::config::{Limits, ProxyConfig};
use crate::machine::{Broken, Effect, Machine};
use crate::parking::Joined;
use crate::process_state::Shared;
use crate::service_state::ServiceState;
use crate::services::Services;
use crate::shard::Shard;
use crate::signal::{Command, Signal};
use crate::streams::OpenStream;
use crate::waker::{StreamEvent, StreamId};

pub const GENERATION: [u8; 16] = [7; 16];
pub const F_MS: u64 = 9_000;
pub const MARGIN_MS: u64 = 200;

pub struct World {
    pub machine: Machine,
    pub shared: Arc<Shared>,
    pub services: Arc<Services>,
    pub now: u64,
    pub revision: u64,
    pub effects: Vec<Effect>,
}

impl World {
    pub fn new() -> World {
        let limits = Limits {
            entries: 1_000,
            snapshot_entries: 100,
            mints: 2,
            ..Limits::default()
        };
        let config = ProxyConfig {
            coordinator: "127.0.0.1:1".parse().unwrap(),
            name: "edge-1".into(),
            pool: "default".into(),
            token: String::new(),
            software: "test".into(),
            zone: String::new(),
            max_wait_ms: 60_000,
            workers: 0,
            limits,
        };
        let shared = Arc::new(Shared::new(
            limits,
            0,
            Arc::new(Signal::new(Box::new(|| ()))),
        ));
        let services = Arc::new(Services::new(&shared));
        let now = 1_000_000;
        let machine = Machine::new(
            config,
            [1; 16],
            Arc::clone(&shared),
            Arc::clone(&services),
            now,
        );
        World {
            machine,
            shared,
            services,
            now,
            revision: 0,
            effects: Vec::new(),
        }
    }

    /// Connected, with one service `world` and servers `a` (incarnation 1) and `b` (2), and a
    /// lease.
    pub fn following(guarded: bool) -> World {
        let mut world = World::new();
        world.connect(5);
        world.snapshot(
            10,
            vec![service("world", guarded), server("a", 1), server("b", 2)],
        );
        world.grant();
        world.effects.clear();
        world
    }

    pub fn connect(&mut self, term: u64) {
        self.machine.connected();
        self.frame(Body::Welcome(welcome(term))).unwrap();
    }

    pub fn reconnect(&mut self, term: u64) {
        self.machine.disconnected(self.now);
        self.effects.clear();
        self.connect(term);
    }

    pub fn frame(&mut self, body: Body) -> Result<(), Broken> {
        let result = self.machine.on_frame(self.now, body);
        self.effects.extend(self.machine.take_effects());
        result
    }

    pub fn snapshot(&mut self, revision: u64, entries: Vec<Entry>) {
        self.frame(batch(0, revision, entries, Some(true))).unwrap();
        self.revision = revision;
    }

    pub fn feed(&mut self, entries: Vec<Entry>) {
        let next = self.revision + 3;
        self.frame(batch(self.revision, next, entries, None))
            .unwrap();
        self.revision = next;
    }

    pub fn tick(&mut self, ms: u64) {
        self.now += ms;
        let taken = self.shared.signal.take();
        self.machine.on_taken(self.now, taken);
        self.machine.on_tick(self.now);
        self.effects.extend(self.machine.take_effects());
    }

    /// Answers the last renewal.
    pub fn grant(&mut self) {
        let nonce = self.sent(|body| match body {
            Body::RenewFeedLease(renewal) => Some(renewal.nonce),
            _ => None,
        });
        let lease = FeedLease {
            nonce: *nonce.last().expect("a renewal"),
            revision: self.revision,
        };
        self.frame(Body::FeedLease(lease)).unwrap();
    }

    pub fn world(&self) -> Arc<ServiceState> {
        self.services.named("world")
    }

    pub fn shard(&self, key: &str) -> Shard {
        Shard::new(self.world().id, key.as_bytes())
    }

    pub fn look(&self, key: &str) -> Answer {
        self.world().look(key.as_bytes(), self.now, false)
    }

    pub fn pick(&self, key: &str) -> Answer {
        self.world().look(key.as_bytes(), self.now, true)
    }

    /// As `Service::park` does it.
    pub fn park(&mut self, key: &str, stream: u64, ms: u64) {
        let shard = self.shard(key);
        let joined =
            self.shared
                .parking
                .lock()
                .join(shard.clone(), StreamId(stream), self.now + ms);
        if joined == Joined::First {
            assert!(self.shared.signal.send(Command::Ask(shard)));
        }
        self.tick(0);
    }

    pub fn open(&self, key: &str, epoch: u64, incarnation: u64, stream: u64, kind: StreamKind) {
        let open = OpenStream {
            stream: StreamId(stream),
            service: self.world().id,
            epoch,
            incarnation,
            kind,
        };
        self.shared
            .streams
            .open(open, (!key.is_empty()).then(|| self.shard(key)));
    }

    pub fn close(&mut self, stream: u64) {
        self.shared.streams.close(StreamId(stream));
        self.shared.signal.check_quiet();
        self.tick(10);
    }

    pub fn sent<T>(&self, pick: impl Fn(&Body) -> Option<T>) -> Vec<T> {
        let sent = self.effects.iter().filter_map(|effect| match effect {
            Effect::Send(body) => pick(body),
            _ => None,
        });
        sent.collect()
    }

    pub fn resolves(&self) -> Vec<Resolve> {
        self.sent(|body| match body {
            Body::Resolve(resolve) => Some(resolve.clone()),
            _ => None,
        })
    }

    pub fn woken(&self) -> Vec<(u64, StreamEvent)> {
        let woken = self.effects.iter().filter_map(|effect| match effect {
            Effect::Wake(stream, event) => Some((stream.0, *event)),
            _ => None,
        });
        woken.collect()
    }

    /// Answers the last resolve.
    pub fn answer(&mut self, outcome: ResolveOutcome, incarnation: u64, epoch: u64) {
        let resolve = self.resolves().pop().expect("a resolve");
        let resolved = resolved(&resolve, outcome, incarnation, epoch, self.revision);
        self.frame(Body::Resolved(resolved)).unwrap();
    }

    /// Teaches the owner of a key.
    pub fn own(&mut self, key: &str, incarnation: u64, epoch: u64) {
        self.park(key, 900, 1_000);
        self.answer(ResolveOutcome::Owner, incarnation, epoch);
        self.effects.clear();
    }
}

pub fn welcome(term: u64) -> Welcome {
    Welcome {
        generation: GENERATION.to_vec(),
        term,
        ..Welcome::default()
    }
}

pub fn batch(previous: u64, revision: u64, entries: Vec<Entry>, snapshot: Option<bool>) -> Body {
    let entries = entries
        .into_iter()
        .map(|entry| FeedEntry { entry: Some(entry) })
        .collect();
    let (snapshot, complete) = (snapshot.is_some(), snapshot == Some(true));
    Body::FeedBatch(FeedBatch {
        previous,
        revision,
        entries,
        snapshot,
        complete,
        term: 5,
    })
}

pub fn resolved(
    ask: &Resolve,
    outcome: ResolveOutcome,
    incarnation: u64,
    epoch: u64,
    revision: u64,
) -> Resolved {
    Resolved {
        request_id: ask.request_id,
        service: ask.service.clone(),
        key: ask.key.clone(),
        outcome: outcome.into(),
        incarnation,
        epoch,
        revision,
        ..Resolved::default()
    }
}

pub fn service(name: &str, guarded: bool) -> Entry {
    Entry::Service(ServiceEntry {
        name: name.into(),
        lease_ms: 9_000,
        feed_lease_ms: u32::try_from(F_MS).unwrap(),
        margin_ms: u32::try_from(MARGIN_MS).unwrap(),
        idle_ms: 80_000,
        drain_ms: 2_000,
        guarded,
        ..ServiceEntry::default()
    })
}

pub fn server(id: &str, incarnation: u64) -> Entry {
    Entry::Server(ServerEntry {
        service: "world".into(),
        server_id: id.into(),
        incarnation,
        address: format!("127.0.0.1:{incarnation}"),
        state: ServerState::Active.into(),
        ..ServerEntry::default()
    })
}

pub fn ended(id: &str, incarnation: u64, after: After) -> Entry {
    let (service, server_id) = ("world".into(), id.into());
    Entry::ServerEnded(ServerEndedEntry {
        service,
        server_id,
        incarnation,
        after: after.into(),
    })
}
