//! The scripted coordinator and an ear for what the data plane would hear.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use belay_owner::{Level, Limits, Proxy, ProxyConfig, StreamEvent, StreamId, Waker};
use belay_proto::v1::feed_entry::Entry;
use belay_proto::v1::frame::Body;
use belay_proto::v1::{
    FeedBatch, FeedEntry, FeedLease, Frame, Hello, Pong, Resolve, ResolveOutcome, Resolved,
    ServerEntry, ServerState, ServiceEntry, Welcome,
};
use belay_proto::{Decoder, encode};

/// Nothing in these tests takes as long when it works.
pub const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
pub struct Ear {
    heard: Mutex<(bool, Vec<(u64, StreamEvent)>)>,
    changed: Condvar,
}

impl Waker for Ear {
    fn wake(&self, stream: StreamId, event: StreamEvent) {
        self.heard.lock().unwrap().1.push((stream.0, event));
        self.changed.notify_all();
    }

    fn ready(&self) {
        self.heard.lock().unwrap().0 = true;
        self.changed.notify_all();
    }

    fn log(&self, level: Level, message: &str) {
        println!("{level:?} {message}");
    }
}

impl Ear {
    pub fn is_ready(&self) -> bool {
        self.heard.lock().unwrap().0
    }

    pub fn await_ready(&self) {
        let heard = self.heard.lock().unwrap();
        let (heard, _) = self
            .changed
            .wait_timeout_while(heard, PATIENCE, |heard| !heard.0)
            .unwrap();
        assert!(heard.0, "never ready");
    }

    /// The events once there are `count`.
    pub fn await_events(&self, count: usize) -> Vec<(u64, StreamEvent)> {
        let heard = self.heard.lock().unwrap();
        let (heard, _) = self
            .changed
            .wait_timeout_while(heard, PATIENCE, |heard| heard.1.len() < count)
            .unwrap();
        assert!(heard.1.len() >= count, "only {:?}", heard.1);
        let mut events = heard.1.clone();
        events.sort_by_key(|(stream, _)| *stream);
        events
    }
}

pub fn await_true(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        std::thread::yield_now();
    }
}

pub struct Coordinator {
    listener: TcpListener,
}

pub struct Peer {
    stream: TcpStream,
    decoder: Decoder,
    pub hello: Hello,
    /// Renewals are answered by `next`.
    pub grants: bool,
    pub revision: u64,
    pub kept: Vec<Body>,
}

pub fn start(max_wait_ms: u64) -> (Coordinator, Proxy, Arc<Ear>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = ProxyConfig {
        coordinator: listener.local_addr().unwrap(),
        name: "edge-1".into(),
        pool: "default".into(),
        token: "secret".into(),
        software: "test".into(),
        zone: String::new(),
        max_wait_ms,
        workers: 2,
        limits: Limits::default(),
    };
    let ear = Arc::new(Ear::default());
    let proxy = Proxy::start(config, Arc::clone(&ear) as Arc<dyn Waker>).unwrap();
    (Coordinator { listener }, proxy, ear)
}

/// Following, with a service `world` and servers `a` (incarnation 1) and `b` (2).
pub fn following(guarded: bool) -> (Coordinator, Proxy, Arc<Ear>, Peer) {
    let (coordinator, proxy, ear) = start(0);
    let mut peer = coordinator.accept();
    peer.snapshot(
        10,
        vec![service(guarded, 60_000), server("a", 1), server("b", 2)],
    );
    peer.grant();
    ear.await_ready();
    (coordinator, proxy, ear, peer)
}

impl Coordinator {
    /// The next connection, welcomed.
    pub fn accept(&self) -> Peer {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let hello = Hello::default();
        let mut peer = Peer {
            stream,
            decoder: Decoder::new(),
            hello,
            grants: true,
            revision: 0,
            kept: Vec::new(),
        };
        let Body::Hello(hello) = peer.read() else {
            panic!("the first frame is not Hello")
        };
        peer.hello = hello;
        peer.send(Body::Welcome(Welcome {
            generation: vec![3; 16],
            term: 1,
            ..Welcome::default()
        }));
        peer
    }
}

impl Peer {
    pub fn send(&mut self, body: Body) {
        let mut wire = Vec::new();
        encode(&Frame { body: Some(body) }, &mut wire).unwrap();
        self.send_bytes(&wire);
    }

    pub fn send_bytes(&mut self, wire: &[u8]) {
        self.stream.write_all(wire).unwrap();
    }

    fn read(&mut self) -> Body {
        self.try_read().expect("the proxy closed the connection")
    }

    fn try_read(&mut self) -> Option<Body> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return Some(frame.body.unwrap());
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.decoder.push(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    /// The next frame that is not answered by itself; `None` at the end of the connection.
    pub fn next(&mut self) -> Option<Body> {
        loop {
            match self.try_read()? {
                Body::Ping(ping) => self.send(Body::Pong(Pong { nonce: ping.nonce })),
                Body::RenewFeedLease(renewal) if self.grants => {
                    let (nonce, revision) = (renewal.nonce, self.revision);
                    self.send(Body::FeedLease(FeedLease { nonce, revision }));
                }
                other => return Some(other),
            }
        }
    }

    /// The next frame that `pick` takes; others are kept aside.
    pub fn expect<T>(&mut self, pick: impl Fn(&Body) -> Option<T>) -> T {
        loop {
            let body = self.next().expect("the proxy closed the connection");
            match pick(&body) {
                Some(found) => return found,
                None => self.kept.push(body),
            }
        }
    }

    /// Answers the next renewal.
    pub fn grant(&mut self) {
        self.grants = false;
        let nonce = self.expect(|body| {
            if let Body::RenewFeedLease(renewal) = body {
                Some(renewal.nonce)
            } else {
                None
            }
        });
        let revision = self.revision;
        self.send(Body::FeedLease(FeedLease { nonce, revision }));
        self.grants = true;
    }

    pub fn resolve(&mut self) -> Resolve {
        self.expect(|body| {
            if let Body::Resolve(resolve) = body {
                Some(resolve.clone())
            } else {
                None
            }
        })
    }

    pub fn own(&mut self, ask: &Resolve, incarnation: u64, epoch: u64) {
        let resolved = Resolved {
            request_id: ask.request_id,
            service: ask.service.clone(),
            key: ask.key.clone(),
            outcome: ResolveOutcome::Owner.into(),
            incarnation,
            epoch,
            revision: self.revision.max(epoch),
            ..Resolved::default()
        };
        self.send(Body::Resolved(resolved));
    }

    pub fn snapshot(&mut self, revision: u64, entries: Vec<Entry>) {
        for entry in entries {
            self.send(Body::FeedBatch(batch(
                0,
                revision,
                vec![entry],
                Some(false),
            )));
        }
        self.send(Body::FeedBatch(batch(0, revision, vec![], Some(true))));
        self.revision = revision;
    }

    pub fn feed(&mut self, revision: u64, entries: Vec<Entry>) {
        let previous = std::mem::replace(&mut self.revision, revision);
        self.send(Body::FeedBatch(batch(previous, revision, entries, None)));
    }
}

pub fn batch(
    previous: u64,
    revision: u64,
    entries: Vec<Entry>,
    snapshot: Option<bool>,
) -> FeedBatch {
    let entries = entries
        .into_iter()
        .map(|entry| FeedEntry { entry: Some(entry) })
        .collect();
    let (snapshot, complete) = (snapshot.is_some(), snapshot == Some(true));
    FeedBatch {
        previous,
        revision,
        entries,
        snapshot,
        complete,
        term: 1,
    }
}

pub fn service(guarded: bool, feed_lease_ms: u32) -> Entry {
    Entry::Service(ServiceEntry {
        name: "world".into(),
        feed_lease_ms,
        lease_ms: feed_lease_ms,
        margin_ms: 200,
        idle_ms: 600_000,
        drain_ms: 1_000,
        guarded,
        ..ServiceEntry::default()
    })
}

pub fn server(id: &str, incarnation: u64) -> Entry {
    Entry::Server(ServerEntry {
        service: "world".into(),
        server_id: id.into(),
        incarnation,
        address: format!("127.0.0.1:{}", 9_000 + incarnation),
        state: ServerState::Active.into(),
        ..ServerEntry::default()
    })
}
