use belay_proto::v1::frame::Body;
use belay_proto::v1::{Problem, ResolveOutcome};

use super::harness::*;
use crate::answer::{Answer, Refusal, StreamKind};
use crate::signal::Command;
use crate::waker::StreamEvent;

#[test]
fn p5_a_hundred_streams_are_one_resolve() {
    let mut world = World::following(true);
    for stream in 0..100 {
        world.park("k", stream, 5_000);
    }
    assert_eq!(world.resolves().len(), 1);
    world.answer(ResolveOutcome::Owner, 1, 8);
    assert_eq!(
        world.woken(),
        (0..100)
            .map(|stream| (stream, StreamEvent::Answer))
            .collect::<Vec<_>>()
    );
    assert!(matches!(world.look("k"), Answer::Owner(pick) if pick.epoch == 8));
}

#[test]
fn p5_a_refusal_is_repeated_for_a_second_only() {
    let mut world = World::following(true);
    world.park("k", 1, 5_000);
    world.answer(ResolveOutcome::Full, 0, 0);
    assert_eq!(world.woken(), [(1, StreamEvent::Answer)]);
    assert!(matches!(
        world.look("k"),
        Answer::Refused {
            reason: Refusal::Full,
            retry_after_ms: 1_000
        }
    ));
    world.tick(1_000);
    assert!(matches!(world.look("k"), Answer::Miss));
    world.park("k", 2, 5_000);
    world.answer(ResolveOutcome::NoServer, 0, 0);
    world.feed(vec![server("c", 12)]);
    assert!(matches!(world.look("k"), Answer::Miss), "a server came");
}

#[test]
fn r1_an_answer_below_the_refusal_is_asked_for_again() {
    let mut world = World::following(true);
    world.own("k", 1, 8);
    world.world().map.distrust(b"k", 8);
    assert!(
        world
            .shared
            .signal
            .send(Command::AskAbove(world.shard("k"), 50))
    );
    world.tick(0);
    assert_eq!(
        world.resolves().last().map(|resolve| resolve.min_revision),
        Some(50)
    );
    world.answer(ResolveOutcome::Owner, 1, 8);
    assert!(matches!(world.look("k"), Answer::Miss));
    world.effects.clear();
    world.tick(20);
    world.revision = 60;
    world.answer(ResolveOutcome::Owner, 2, 55);
    assert!(matches!(world.look("k"), Answer::Owner(pick) if pick.epoch == 55));
}

#[test]
fn m2_moving_keeps_streams_parked_and_asks_again() {
    let mut world = World::following(true);
    world.park("k", 1, 3_000);
    world.answer(ResolveOutcome::Moving, 0, 0);
    assert_eq!(world.woken(), []);
    world.tick(1_000);
    assert_eq!(world.resolves().len(), 2);
    world.answer(ResolveOutcome::NotYet, 0, 0);
    world.tick(2_000);
    assert_eq!(world.woken(), [(1, StreamEvent::Deadline(Refusal::Moving))]);
    // Nobody waits any more: the answer to the third is not followed by a fourth.
    world.answer(ResolveOutcome::NotYet, 0, 0);
    world.effects.clear();
    world.tick(5_000);
    assert_eq!(world.resolves().len(), 0);
}

#[test]
fn an_unanswered_key_ends_as_coordinator_silent() {
    let mut world = World::following(true);
    world.machine.disconnected(world.now);
    world.park("k", 1, 3_000);
    world.tick(3_000);
    assert_eq!(
        world.woken(),
        [(1, StreamEvent::Deadline(Refusal::CoordinatorSilent))]
    );
}

#[test]
fn p7_what_was_asked_is_asked_again_on_the_next_connection() {
    let mut world = World::following(true);
    world.park("k", 1, 30_000);
    let first = world.resolves().pop().unwrap();
    world.reconnect(5);
    assert_eq!(world.resolves().len(), 1);
    assert_ne!(world.resolves()[0].request_id, first.request_id);
    // A late answer to the first would be another connection's.
    world
        .frame(Body::Resolved(resolved(
            &first,
            ResolveOutcome::Owner,
            1,
            8,
            10,
        )))
        .unwrap();
    assert!(matches!(world.look("k"), Answer::Miss));
    world.answer(ResolveOutcome::Owner, 2, 9);
    assert!(matches!(world.look("k"), Answer::Owner(pick) if pick.epoch == 9));
}

#[test]
fn p2_an_answer_older_than_the_feed_or_of_an_unknown_incarnation_is_an_error() {
    let mut world = World::following(true);
    world.park("k", 1, 5_000);
    world.feed(vec![server("c", 12)]);
    let ask = world.resolves().pop().unwrap();
    assert!(
        world
            .frame(Body::Resolved(resolved(
                &ask,
                ResolveOutcome::Owner,
                1,
                8,
                12
            )))
            .is_err()
    );
    let mut world = World::following(true);
    world.park("k", 1, 5_000);
    let ask = world.resolves().pop().unwrap();
    assert!(
        world
            .frame(Body::Resolved(resolved(
                &ask,
                ResolveOutcome::Owner,
                77,
                8,
                10
            )))
            .is_err()
    );
}

#[test]
fn i9_an_older_epoch_is_never_applied() {
    let mut world = World::following(true);
    world.own("k", 1, 8);
    world.shared.signal.send(Command::Refresh(world.shard("k")));
    world.tick(0);
    world.answer(ResolveOutcome::Owner, 2, 7);
    assert!(
        matches!(world.look("k"), Answer::Owner(pick) if pick.epoch == 8 && pick.server.incarnation == 1)
    );
}

#[test]
fn a5_used_for_half_of_idle_and_refreshed_before() {
    let mut world = World::following(true);
    world.own("k", 1, 8);
    let renew = |world: &mut World, ms: u64| {
        for _ in 0..ms / 3_000 {
            world.tick(3_000);
            world.grant();
        }
    };
    renew(&mut world, 30_000);
    assert!(matches!(world.look("k"), Answer::Owner(_)));
    renew(&mut world, 1_000);
    world.tick(1_000);
    assert!(
        matches!(world.look("k"), Answer::Owner(_)),
        "31 of 80 s: past three eighths"
    );
    assert!(matches!(world.look("k"), Answer::Owner(_)));
    world.tick(0);
    assert_eq!(
        world
            .resolves()
            .iter()
            .map(|resolve| resolve.refresh)
            .collect::<Vec<_>>(),
        [true]
    );
    renew(&mut world, 12_000);
    assert!(
        matches!(world.look("k"), Answer::Miss),
        "43 s: not used past half of idle"
    );
}

#[test]
fn a5_a_key_with_an_open_stream_is_kept_fresh() {
    let mut world = World::following(true);
    world.own("k", 1, 8);
    world.open("k", 8, 1, 5, StreamKind::WebSocket);
    let mut refreshed = 0;
    for _ in 0..60 {
        world.tick(3_000);
        world.grant();
        if let Some(ask) = world.resolves().pop() {
            assert!(ask.refresh);
            refreshed += 1;
            world.answer(ResolveOutcome::Owner, 1, 8);
            world.effects.clear();
        }
        assert!(matches!(world.look("k"), Answer::Owner(_)));
    }
    assert!(
        (3..=7).contains(&refreshed),
        "{refreshed} in 180 s of an idle time of 80 s"
    );
}

#[test]
fn a5_unused_entries_are_dropped() {
    let mut world = World::following(true);
    world.own("k", 1, 8);
    world.own("l", 1, 9);
    // Each part is swept every 128 s, and nothing goes before half of idle.
    for _ in 0..256 {
        world.tick(1_000);
    }
    assert_eq!(world.shared.totals.entries(), 0);
}

#[test]
fn a_coordinator_that_will_not_answer_now_is_asked_later() {
    let mut world = World::following(true);
    world.park("k", 1, 30_000);
    let request_id = world.resolves().pop().unwrap().request_id;
    let problem = Problem {
        code: "busy".into(),
        request_id,
        retry_after_ms: 300,
        ..Problem::default()
    };
    world.frame(Body::Problem(problem)).unwrap();
    world.tick(299);
    assert_eq!(world.resolves().len(), 1);
    world.tick(1);
    assert_eq!(world.resolves().len(), 2);
}
