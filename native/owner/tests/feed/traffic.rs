use belay_owner::{
    AfterRefusal, Answer, MintResult, Opened, Parked, Refusal, ServerRefusal, StreamEvent,
    StreamId, StreamKind,
};
use belay_proto::v1::feed_entry::Entry;
use belay_proto::v1::frame::Body;
use belay_proto::v1::{After, MintOutcome, Minted, ServerEndedEntry, ShardMoving, ShardOwner};

use super::peer::*;

fn moving(key: &str, epoch: u64) -> Entry {
    let (service, key) = ("world".into(), key.into());
    Entry::ShardMoving(ShardMoving {
        service,
        key,
        epoch,
        incarnation: 1,
        drain_ms: 300,
    })
}

#[test]
fn p5_a_hundred_parked_streams_are_one_resolve() {
    let (_coordinator, proxy, ear, mut peer) = following(true);
    let world = proxy.service("world");
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let world = world.clone();
            scope.spawn(move || {
                for n in 0..25 {
                    assert!(matches!(world.lookup(b"k"), Answer::Miss));
                    assert_eq!(
                        world.park(b"k", StreamId(worker * 25 + n), 60_000),
                        Parked::Waiting
                    );
                }
            });
        }
    });
    assert_eq!(proxy.stats().parked, 100);
    let ask = peer.resolve();
    peer.own(&ask, 1, 12);
    let events = ear.await_events(100);
    assert_eq!(
        events,
        (0..100)
            .map(|stream| (stream, StreamEvent::Answer))
            .collect::<Vec<_>>()
    );
    assert!(
        matches!(world.pick(b"k"), Answer::Owner(pick) if pick.epoch == 12 && pick.in_flight.is_none())
    );
    let stats = proxy.stats();
    assert_eq!((stats.resolves, stats.parked, stats.map_entries), (1, 0, 1));
    assert_eq!(stats.resolve_ms.iter().sum::<u64>(), 1);
}

#[test]
fn a_parked_stream_ends_at_its_deadline() {
    let (_coordinator, proxy, ear, mut peer) = following(true);
    let world = proxy.service("world");
    assert_eq!(world.park(b"k", StreamId(1), 50), Parked::Waiting);
    assert_eq!(world.park(b"k", StreamId(2), 60_000), Parked::Waiting);
    peer.resolve();
    assert_eq!(
        ear.await_events(1),
        [(1, StreamEvent::Deadline(Refusal::CoordinatorSilent))]
    );
    proxy.unpark(StreamId(2));
    assert_eq!(proxy.stats().parked, 0);
}

#[test]
fn p1_when_the_lease_ends_nothing_is_used_and_unguarded_streams_are_reset() {
    let (coordinator, proxy, ear) = start(0);
    let mut peer = coordinator.accept();
    peer.snapshot(10, vec![service(false, 1_000), server("a", 1)]);
    peer.grant();
    ear.await_ready();
    let world = proxy.service("world");
    let Answer::Owner(pick) = world.pick_server(1) else {
        panic!("no server")
    };
    assert_eq!(
        world.open_attempt(b"", &pick, StreamId(1)),
        Opened::Registered
    );
    let Answer::Owner(before) = world.pick_server(1) else {
        panic!("no server")
    };
    peer.grants = false;
    assert_eq!(
        ear.await_events(1),
        [(1, StreamEvent::Reset(Refusal::LeaseOver))]
    );
    assert!(matches!(
        world.lookup(b"k"),
        Answer::Refused {
            reason: Refusal::LeaseOver,
            retry_after_ms: 1_000
        }
    ));
    // Nobody would tell it any more.
    assert_eq!(world.open_attempt(b"", &before, StreamId(2)), Opened::Moved);
    assert_eq!(proxy.stats().lease_left_ms, 0);
}

#[test]
fn m2_moving_closes_sockets_and_quiet_follows_dropped() {
    let (_coordinator, proxy, ear, mut peer) = following(false);
    let world = proxy.service("world");
    assert_eq!(world.park(b"k", StreamId(9), 60_000), Parked::Waiting);
    let ask = peer.resolve();
    peer.own(&ask, 1, 12);
    ear.await_events(1);
    let Answer::Owner(pick) = world.pick(b"k") else {
        panic!("no owner")
    };
    assert_eq!(
        world.open(b"k", pick.epoch, 1, StreamId(1), StreamKind::WebSocket),
        Opened::Registered
    );
    peer.feed(20, vec![moving("k", 12)]);
    assert_eq!(ear.await_events(2)[0], (1, StreamEvent::CloseMoved));
    assert!(matches!(world.pick(b"k"), Answer::Moving));
    assert_eq!(
        world.open(b"k", 12, 1, StreamId(2), StreamKind::WebSocket),
        Opened::Moved
    );
    let dropped = peer.expect(|body| match body {
        Body::Dropped(dropped) => Some(dropped.revision),
        Body::Quiet(quiet) => panic!("quiet before its stream ended: {quiet:?}"),
        _ => None,
    });
    assert!(dropped <= 20);
    proxy.close(StreamId(1));
    drop(pick);
    let quiet = peer.expect(|body| {
        if let Body::Quiet(quiet) = body {
            Some(quiet.clone())
        } else {
            None
        }
    });
    assert_eq!(
        (quiet.key.as_str(), quiet.epoch, quiet.incarnation),
        ("k", 12, 1)
    );
    assert_eq!(world.park(b"k", StreamId(3), 60_000), Parked::Waiting);
    let (service, key, after) = ("world".into(), "k".into(), After::Released.into());
    peer.feed(
        30,
        vec![Entry::ShardOwner(ShardOwner {
            service,
            key,
            epoch: 30,
            incarnation: 2,
            after,
        })],
    );
    assert!(ear.await_events(3).contains(&(3, StreamEvent::Answer)));
    assert!(matches!(world.pick(b"k"), Answer::Owner(pick) if pick.server.incarnation == 2));
}

#[test]
fn m1_an_ended_server_is_a_miss_for_all_its_keys_and_quiet_when_nothing_is_open() {
    let (_coordinator, proxy, ear, mut peer) = following(false);
    let world = proxy.service("world");
    for stream in 0..10 {
        let key = format!("k{stream}");
        assert_eq!(
            world.park(key.as_bytes(), StreamId(stream), 60_000),
            Parked::Waiting
        );
        let ask = peer.resolve();
        peer.own(&ask, 1, 12);
    }
    ear.await_events(10);
    let Answer::Owner(pick) = world.pick(b"k3") else {
        panic!("no owner")
    };
    let (service, server_id, after) = ("world".into(), "a".into(), After::Expired.into());
    peer.feed(
        20,
        vec![Entry::ServerEnded(ServerEndedEntry {
            service,
            server_id,
            incarnation: 1,
            after,
        })],
    );
    peer.expect(|body| {
        matches!(body, Body::Dropped(dropped) if dropped.revision == 20).then_some(())
    });
    for n in 0..10 {
        assert!(matches!(
            world.pick(format!("k{n}").as_bytes()),
            Answer::Miss
        ));
    }
    drop(pick);
    let quiet = peer.expect(|body| {
        if let Body::Quiet(quiet) = body {
            Some(quiet.clone())
        } else {
            None
        }
    });
    assert_eq!(
        (quiet.key.as_str(), quiet.epoch, quiet.incarnation),
        ("", 0, 1)
    );
    // G7: the key has a new owner; a late answer of the expired one is worth nothing.
    assert_eq!(world.park(b"k3", StreamId(20), 60_000), Parked::Waiting);
    let ask = peer.resolve();
    peer.own(&ask, 2, 25);
    ear.await_events(11);
    assert!(world.is_outcome_unknown(b"k3", 12, 1));
    assert!(!world.is_outcome_unknown(b"k3", 25, 2));
}

#[test]
fn r1_a_refusal_is_resolved_at_or_above_what_the_server_knew() {
    let (_coordinator, proxy, ear, mut peer) = following(true);
    let world = proxy.service("world");
    assert_eq!(world.park(b"k", StreamId(1), 60_000), Parked::Waiting);
    let ask = peer.resolve();
    peer.own(&ask, 1, 12);
    ear.await_events(1);
    let refusal = |incarnation, as_of, resent| ServerRefusal {
        incarnation,
        as_of,
        resent,
    };
    assert_eq!(
        world.refused(b"k", refusal(2, 50, false)),
        AfterRefusal::SendAgain
    );
    assert_eq!(
        world.refused(b"k", refusal(1, 11, false)),
        AfterRefusal::WaitAndResend
    );
    assert!(matches!(world.pick(b"k"), Answer::Owner(_)));
    assert_eq!(
        world.refused(b"k", refusal(1, 40, false)),
        AfterRefusal::Park
    );
    assert!(matches!(world.pick(b"k"), Answer::Miss));
    assert_eq!(world.park(b"k", StreamId(2), 60_000), Parked::Waiting);
    let ask = peer.resolve();
    assert_eq!(ask.min_revision, 40);
    peer.own(&ask, 2, 45);
    ear.await_events(2);
    assert!(matches!(world.pick(b"k"), Answer::Owner(pick) if pick.epoch == 45));
}

#[test]
fn a7_a_minted_key_is_claimed() {
    let (_coordinator, proxy, ear, mut peer) = following(true);
    let world = proxy.service("world");
    assert!(world.mint(b"session-1", 2, StreamId(7), 60_000));
    let mint = peer.expect(|body| {
        if let Body::Mint(mint) = body {
            Some(mint.clone())
        } else {
            None
        }
    });
    assert_eq!((mint.key.as_str(), mint.incarnation), ("session-1", 2));
    let (request_id, service, key) = (mint.request_id, mint.service, mint.key);
    let outcome = MintOutcome::Ok.into();
    peer.send(Body::Minted(Minted {
        request_id,
        service,
        key,
        outcome,
        epoch: 44,
        revision: 44,
    }));
    assert_eq!(
        ear.await_events(1),
        [(7, StreamEvent::Minted(MintResult::Owned { epoch: 44 }))]
    );
    assert!(matches!(world.pick(b"session-1"), Answer::Owner(pick) if pick.epoch == 44));
}

#[test]
fn a4_hosts_are_reported_when_both_workers_hold_them_and_on_each_session() {
    let (coordinator, proxy, _ear, mut peer) = following(true);
    let world = proxy.service("world");
    world.hosts(1, &["127.0.0.1:9001"]);
    world.hosts(2, &["127.0.0.1:9001", "127.0.0.1:9002"]);
    world.hosts(1, &["127.0.0.1:9002", "127.0.0.1:9001"]);
    let hosts = |body: &Body| {
        if let Body::Hosts(hosts) = body {
            Some(hosts.addresses.clone())
        } else {
            None
        }
    };
    assert_eq!(peer.expect(hosts), ["127.0.0.1:9001", "127.0.0.1:9002"]);
    drop(peer);
    assert_eq!(coordinator.accept().expect(hosts).len(), 2);
}
