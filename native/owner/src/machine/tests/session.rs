use belay_proto::v1::feed_entry::Entry;
use belay_proto::v1::frame::Body;
use belay_proto::v1::{After, Hello, Ping, Problem, ServiceRemoved, Welcome};

use super::harness::*;
use crate::answer::{Answer, Refusal, ServerAnswer, StreamKind};
use crate::machine::Effect;
use crate::waker::StreamEvent;

fn hello(world: &World) -> Hello {
    let sent = world.sent(|body| match body {
        Body::Hello(hello) => Some(hello.clone()),
        _ => None,
    });
    sent.last().expect("a Hello").clone()
}

fn refusal(answer: &Answer) -> Option<Refusal> {
    match answer {
        Answer::Refused { reason, .. } => Some(*reason),
        _ => None,
    }
}

#[test]
fn f1_nothing_is_believed_before_the_snapshot_is_complete_and_leased() {
    let mut world = World::new();
    assert_eq!(refusal(&world.look("k")), Some(Refusal::NoSnapshot));
    world.connect(5);
    assert_eq!(hello(&world).generation, Vec::<u8>::new());
    world
        .frame(batch(0, 10, vec![service("world", true)], Some(false)))
        .unwrap();
    assert_eq!(refusal(&world.look("k")), Some(Refusal::NoSnapshot));
    world
        .frame(batch(0, 10, vec![server("a", 1)], Some(true)))
        .unwrap();
    world.revision = 10;
    assert_eq!(refusal(&world.look("k")), Some(Refusal::LeaseOver));
    assert!(!world.effects.contains(&Effect::Ready));
    world.grant();
    assert!(matches!(world.look("k"), Answer::Miss));
    assert!(world.effects.contains(&Effect::Ready));
    assert_eq!(
        refusal(&world.services.named("other").look(b"k", world.now, false)),
        Some(Refusal::ServiceUnknown)
    );
}

#[test]
fn ready_comes_once_at_the_latest_after_the_maximum_wait() {
    let mut world = World::new();
    world.tick(59_999);
    assert!(!world.effects.contains(&Effect::Ready));
    world.tick(1);
    world.tick(60_000);
    world.connect(5);
    world.snapshot(10, vec![service("world", true)]);
    world.grant();
    assert_eq!(
        world
            .effects
            .iter()
            .filter(|effect| **effect == Effect::Ready)
            .count(),
        1
    );
}

#[test]
fn f1_a_resume_goes_on_from_the_highest_revision_seen() {
    let mut world = World::following(true);
    world.own("k", 1, 8);
    world.feed(vec![server("c", 12)]);
    world.reconnect(5);
    assert_eq!(
        (hello(&world).generation, hello(&world).revision),
        (GENERATION.to_vec(), 13)
    );
    // Resumed: what is known stays.
    assert!(
        matches!(world.look("k"), Answer::Owner(pick) if pick.server.incarnation == 1 && pick.epoch == 8)
    );
    world
        .frame(batch(13, 20, vec![server("d", 20)], None))
        .unwrap();
    world.frame(batch(20, 20, vec![], None)).unwrap();
    assert_eq!(world.world().servers.read().len(), 4);
}

#[test]
fn p2_a_gap_forces_a_new_session_with_a_snapshot() {
    let mut world = World::following(true);
    world.own("k", 1, 8);
    assert!(
        world
            .frame(batch(11, 13, vec![server("c", 12)], None))
            .is_err()
    );
    world.reconnect(5);
    assert_eq!(
        (hello(&world).generation, hello(&world).revision),
        (Vec::new(), 0)
    );
    // Anything but a snapshot is refused now.
    assert!(world.frame(batch(10, 13, vec![], None)).is_err());
    world.reconnect(5);
    world.snapshot(20, vec![service("world", true), server("a", 1)]);
    assert!(
        matches!(world.look("k"), Answer::Miss),
        "F1: what was known is forgotten"
    );
    assert_eq!(world.world().server("b", world.now), ServerAnswer::Unknown);
}

#[test]
fn p2_a_batch_inside_a_snapshot_or_of_a_lower_term_is_an_error() {
    let mut world = World::following(true);
    world
        .frame(batch(0, 30, vec![service("world", true)], Some(false)))
        .unwrap();
    assert!(world.frame(batch(10, 13, vec![], None)).is_err());
    let mut world = World::following(true);
    world.reconnect(6);
    assert!(
        world.frame(batch(10, 13, vec![], None)).is_err(),
        "term 5 after 6"
    );
}

#[test]
fn g2_nobody_talks_to_a_deposed_coordinator() {
    let mut world = World::following(true);
    world.machine.disconnected(world.now);
    world.machine.connected();
    assert!(world.frame(Body::Welcome(welcome(4))).is_err());
}

#[test]
fn t4_another_store_voids_every_promise() {
    let mut world = World::following(true);
    world.own("k", 1, 8);
    world.machine.disconnected(world.now);
    world.machine.connected();
    let other = Welcome {
        generation: vec![9; 16],
        term: 1,
        ..Welcome::default()
    };
    world.frame(Body::Welcome(other)).unwrap();
    assert!(
        world.frame(batch(10, 13, vec![], None)).is_err(),
        "a resume of another store"
    );
    world.machine.disconnected(world.now);
    world.machine.connected();
    world
        .frame(Body::Welcome(Welcome {
            generation: vec![9; 16],
            term: 1,
            ..Welcome::default()
        }))
        .unwrap();
    let Body::FeedBatch(mut snapshot) = batch(
        0,
        4,
        vec![service("world", true), server("a", 1)],
        Some(true),
    ) else {
        unreachable!()
    };
    snapshot.term = 1;
    world.frame(Body::FeedBatch(snapshot)).unwrap();
    world.revision = 4;
    assert_eq!(refusal(&world.look("k")), Some(Refusal::LeaseOver));
    world.grant();
    assert!(matches!(world.look("k"), Answer::Miss));
}

#[test]
fn m4_a_snapshot_is_acknowledged_only_when_streams_to_what_it_lacks_are_gone() {
    let mut world = World::following(false);
    world.own("k", 1, 8);
    let Answer::Owner(pick) = world.pick("k") else {
        panic!()
    };
    world.open("k", 8, 1, 5, StreamKind::Stream);
    world
        .machine
        .on_frame(world.now, batch(999, 1_000, vec![], None))
        .unwrap_err();
    world.reconnect(5);
    world.snapshot(20, vec![service("world", false), server("b", 2)]);
    assert!(
        world
            .woken()
            .contains(&(5, StreamEvent::Reset(Refusal::OutcomeUnknown)))
    );
    let dropped = |world: &World| {
        world.sent(|body| match body {
            Body::Dropped(dropped) => Some(dropped.revision),
            Body::RenewFeedLease(renewal) => Some(renewal.dropped),
            _ => None,
        })
    };
    assert_eq!(dropped(&world), [10, 10]);
    drop(pick);
    world.close(5);
    assert_eq!(dropped(&world).last(), Some(&20));
}

#[test]
fn i1u_what_is_open_across_a_snapshot_is_asked_for_again() {
    let mut world = World::following(false);
    world.own("k", 1, 8);
    let Answer::Owner(pick) = world.pick("k") else {
        panic!()
    };
    world.open("k", 8, 1, 5, StreamKind::WebSocket);
    world
        .machine
        .on_frame(world.now, batch(999, 1_000, vec![], None))
        .unwrap_err();
    world.reconnect(5);
    world.snapshot(
        20,
        vec![service("world", false), server("a", 1), server("b", 2)],
    );
    assert!(matches!(world.look("k"), Answer::Miss));
    assert_eq!(world.resolves().len(), 1);
    world.answer(belay_proto::v1::ResolveOutcome::Owner, 2, 15);
    assert!(world.woken().contains(&(5, StreamEvent::CloseMoved)));
    drop(pick);
}

#[test]
fn broken_talk_is_an_error_and_never_a_panic() {
    let mut world = World::new();
    assert!(
        world
            .frame(Body::FeedLease(belay_proto::v1::FeedLease::default()))
            .is_err()
    );
    world.machine.connected();
    assert!(world.frame(Body::Welcome(Welcome::default())).is_err());
    let mut world = World::following(true);
    assert!(world.frame(Body::Welcome(welcome(5))).is_err());
    assert!(
        world
            .frame(Body::Grant(belay_proto::v1::Grant::default()))
            .is_err()
    );
    let fatal = Problem {
        code: "bad-token".into(),
        fatal: true,
        ..Problem::default()
    };
    assert!(world.frame(Body::Problem(fatal)).is_err());
    world.frame(Body::Ping(Ping { nonce: 9 })).unwrap();
    assert_eq!(
        world.sent(|body| if let Body::Pong(pong) = body {
            Some(pong.nonce)
        } else {
            None
        }),
        [9]
    );
}

#[test]
fn a_removed_service_is_unknown_again() {
    let mut world = World::following(true);
    world.feed(vec![Entry::ServiceRemoved(ServiceRemoved {
        name: "world".into(),
    })]);
    assert_eq!(refusal(&world.look("k")), Some(Refusal::ServiceUnknown));
}

#[test]
fn a_snapshot_is_bounded() {
    let mut world = World::new();
    world.connect(5);
    let many = (1..200).map(|n| server(&format!("s{n}"), n)).collect();
    assert!(world.frame(batch(0, 10, many, Some(false))).is_err());
}

#[test]
fn p7_after_a_fault_it_is_another_process_that_believes_nothing() {
    let mut world = World::following(false);
    world.own("k", 1, 8);
    world.open("k", 8, 1, 5, StreamKind::Stream);
    world.park("l", 6, 60_000);
    world.machine.start_over([2; 16], world.now);
    world.effects = world.machine.take_effects();
    assert_eq!(world.woken(), [(5, StreamEvent::Reset(Refusal::LeaseOver))]);
    assert_eq!(refusal(&world.look("k")), Some(Refusal::LeaseOver));
    world.reconnect(5);
    assert_eq!(
        (hello(&world).process_id, hello(&world).revision),
        (vec![2; 16], 0)
    );
    world.snapshot(20, vec![service("world", false), server("a", 1)]);
    world.grant();
    assert_eq!(world.resolves().len(), 1, "who was parked still is");
    assert!(matches!(world.look("k"), Answer::Miss));
}

#[test]
fn m4_a_snapshot_cuts_short_the_drain_of_a_server_whose_end_was_known() {
    let mut world = World::following(false);
    world.own("k", 1, 8);
    let pick = world.pick("k");
    world.open("k", 8, 1, 5, StreamKind::Stream);
    world.feed(vec![ended("a", 1, After::Released)]);
    assert_eq!(world.woken(), [], "it may finish");
    world
        .machine
        .on_frame(world.now, batch(999, 1_000, vec![], None))
        .unwrap_err();
    world.reconnect(5);
    world.snapshot(20, vec![service("world", false), server("b", 2)]);
    assert_eq!(
        world.woken(),
        [(5, StreamEvent::Reset(Refusal::OutcomeUnknown))]
    );
    let dropped = |world: &World| {
        world.sent(|body| {
            if let Body::Dropped(dropped) = body {
                Some(dropped.revision)
            } else {
                None
            }
        })
    };
    assert_eq!(dropped(&world), [13]);
    drop(pick);
    world.close(5);
    assert_eq!(dropped(&world), [13, 20]);
}
