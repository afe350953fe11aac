use belay_owner::{Answer, Refusal};
use belay_proto::v1::frame::Body;

use super::peer::*;

fn refusal(answer: &Answer) -> Option<Refusal> {
    match answer {
        Answer::Refused { reason, .. } => Some(*reason),
        _ => None,
    }
}

#[test]
fn f1_the_gate_opens_after_the_complete_snapshot() {
    let (coordinator, proxy, ear) = start(0);
    let world = proxy.service("world");
    let mut peer = coordinator.accept();
    assert_eq!(
        (
            peer.hello.name.as_str(),
            peer.hello.token.as_str(),
            peer.hello.process_id.len()
        ),
        ("edge-1", "secret", 16)
    );
    assert_eq!(refusal(&world.lookup(b"k")), Some(Refusal::NoSnapshot));
    assert!(!ear.is_ready());
    peer.snapshot(10, vec![service(true, 60_000), server("a", 1)]);
    peer.grant();
    ear.await_ready();
    assert!(matches!(world.lookup(b"k"), Answer::Miss));
    assert_eq!(world.active_servers().len(), 1);
    let stats = proxy.stats();
    assert!(
        stats.connected && stats.synced && stats.lease_left_ms > 0 && stats.lease_left_ms <= 59_800
    );
    assert_eq!(
        (stats.revision, stats.term, stats.services, stats.servers),
        (10, 1, 1, 1)
    );
    proxy.stop();
    peer.expect(|body| matches!(body, Body::Goodbye(_)).then_some(()));
    assert!(peer.next().is_none());
    proxy.stop();
}

#[test]
fn without_a_coordinator_the_gate_opens_after_the_maximum_wait() {
    let (coordinator, proxy, ear) = start(100);
    drop(coordinator);
    ear.await_ready();
    assert_eq!(
        refusal(&proxy.service("world").lookup(b"k")),
        Some(Refusal::NoSnapshot)
    );
    proxy.stop();
}

#[test]
fn f1_a_lost_connection_is_resumed() {
    let (coordinator, proxy, _ear, peer) = following(true);
    drop(peer);
    let mut peer = coordinator.accept();
    assert_eq!(
        (
            peer.hello.generation.as_slice(),
            peer.hello.revision,
            peer.hello.term
        ),
        (&[3; 16][..], 10, 1)
    );
    peer.revision = 10;
    peer.feed(20, vec![server("c", 20)]);
    await_true("the third server", || {
        proxy.service("world").active_servers().len() == 3
    });
    assert_eq!(proxy.stats().reconnects, 1);
}

#[test]
fn p2_a_gap_in_the_feed_brings_a_snapshot() {
    let (coordinator, proxy, _ear, mut peer) = following(true);
    peer.revision = 15;
    peer.feed(20, vec![server("c", 20)]);
    let mut peer = coordinator.accept();
    assert_eq!((peer.hello.generation.len(), peer.hello.revision), (0, 0));
    peer.snapshot(20, vec![service(true, 60_000), server("c", 20)]);
    await_true("only the third server", || {
        let active = proxy.service("world").active_servers();
        active.len() == 1 && &*active[0].id == "c"
    });
}

#[test]
fn broken_frames_cost_a_connection_and_nothing_else() {
    let (coordinator, proxy, _ear, mut peer) = following(true);
    let garbage: [&[u8]; 4] = [
        &[0, 0, 0, 0],
        &[255, 255, 255, 255, 1],
        &[0, 0, 0, 3, 0xff, 0xff, 0xff],
        &[0, 0, 0, 2, 0xf8, 0x3f],
    ];
    for bytes in garbage {
        peer.send_bytes(bytes);
        while peer.next().is_some() {}
        peer = coordinator.accept();
        assert_eq!(peer.hello.revision, 10);
    }
    assert!(matches!(proxy.service("world").lookup(b"k"), Answer::Miss));
}

#[test]
fn a_coordinator_that_never_answers_is_left() {
    let (coordinator, proxy, _ear, _peer) = following(true);
    // Reads nothing and says nothing, with the connection open.
    let peer = coordinator.accept();
    assert_eq!(peer.hello.revision, 10);
    assert_eq!(proxy.stats().reconnects, 1);
}
