use belay_proto::v1::feed_entry::Entry;
use belay_proto::v1::frame::Body;
use belay_proto::v1::{After, Quiet, ResolveOutcome, ShardFree, ShardMoving, ShardOwner};

use super::harness::*;
use crate::answer::{Answer, Refusal, StreamKind};
use crate::machine::Effect;
use crate::waker::StreamEvent;

fn moving(key: &str, epoch: u64) -> Entry {
    let (service, key) = ("world".into(), key.into());
    Entry::ShardMoving(ShardMoving {
        service,
        key,
        epoch,
        incarnation: 1,
        drain_ms: 2_000,
    })
}

fn owner(key: &str, epoch: u64, incarnation: u64) -> Entry {
    let (service, key, after) = ("world".into(), key.into(), After::Released.into());
    Entry::ShardOwner(ShardOwner {
        service,
        key,
        epoch,
        incarnation,
        after,
    })
}

fn free(key: &str, epoch: u64) -> Entry {
    let (service, key, after) = ("world".into(), key.into(), After::Released.into());
    Entry::ShardFree(ShardFree {
        service,
        key,
        epoch,
        after,
    })
}

fn quiets(world: &World) -> Vec<(String, u64, u64)> {
    world.sent(|body| match body {
        Body::Quiet(Quiet {
            key,
            epoch,
            incarnation,
            ..
        }) => Some((key.clone(), *epoch, *incarnation)),
        _ => None,
    })
}

fn position(world: &World, wanted: impl Fn(&Effect) -> bool) -> usize {
    world.effects.iter().position(wanted).expect("the effect")
}

#[test]
fn m2_a_move_parks_and_the_new_owner_releases() {
    let mut world = World::following(true);
    world.own("k", 1, 8);
    world.feed(vec![moving("k", 8)]);
    assert!(matches!(world.look("k"), Answer::Moving));
    assert_eq!(
        world.sent(|body| if let Body::Dropped(d) = body {
            Some(d.revision)
        } else {
            None
        }),
        [13]
    );
    world.park("k", 1, 5_000);
    assert_eq!(world.resolves().len(), 0, "the feed will tell");
    world.feed(vec![owner("k", 20, 2)]);
    assert_eq!(world.woken(), [(1, StreamEvent::Answer)]);
    assert!(
        matches!(world.look("k"), Answer::Owner(pick) if pick.epoch == 20 && pick.server.incarnation == 2)
    );
    assert_eq!(quiets(&world), [], "guarded");
}

#[test]
fn m4_sockets_close_others_drain_then_quiet_after_dropped() {
    let mut world = World::following(false);
    world.own("k", 1, 8);
    let Answer::Owner(socket) = world.pick("k") else {
        panic!()
    };
    let Answer::Owner(request) = world.pick("k") else {
        panic!()
    };
    world.open("k", 8, 1, 1, StreamKind::WebSocket);
    world.open("k", 8, 1, 2, StreamKind::Stream);
    world.feed(vec![moving("k", 8)]);
    assert_eq!(world.woken(), [(1, StreamEvent::CloseMoved)]);
    assert_eq!(quiets(&world), []);
    assert!(matches!(world.pick("k"), Answer::Moving));
    drop(socket);
    world.close(1);
    assert_eq!(quiets(&world), []);
    world.tick(2_000);
    assert_eq!(
        world.woken().last(),
        Some(&(2, StreamEvent::Reset(Refusal::Moving)))
    );
    assert_eq!(quiets(&world), [], "reset, but not gone yet");
    world.close(2);
    assert_eq!(quiets(&world), [], "the attempt is still counted");
    drop(request);
    world.tick(10);
    assert_eq!(quiets(&world), [("k".into(), 8, 1)]);
    let dropped = position(&world, |effect| {
        matches!(effect, Effect::Send(Body::Dropped(_)))
    });
    assert!(
        dropped
            < position(&world, |effect| matches!(
                effect,
                Effect::Send(Body::Quiet(_))
            ))
    );
}

#[test]
fn m2_a_second_move_has_a_drain_deadline_of_its_own() {
    let mut world = World::following(false);
    world.own("k", 1, 8);
    world.feed(vec![moving("k", 8)]);
    world.feed(vec![owner("k", 20, 2)]);
    world.tick(1_500);
    let Answer::Owner(request) = world.pick("k") else {
        panic!()
    };
    world.open("k", 20, 2, 2, StreamKind::Stream);
    world.feed(vec![moving("k", 20)]);
    world.tick(1_000);
    assert_eq!(world.woken(), [], "the first move's deadline is not its");
    world.tick(1_000);
    assert_eq!(
        world.woken(),
        [(2, StreamEvent::Reset(Refusal::Moving))],
        "its own is"
    );
    drop(request);
}

#[test]
fn m4_a_shard_that_is_not_held_is_quiet_at_once() {
    let mut world = World::following(false);
    world.feed(vec![moving("other", 7)]);
    assert_eq!(quiets(&world), [("other".into(), 7, 1)]);
    assert!(matches!(world.look("other"), Answer::Miss));
}

#[test]
fn p3_a_quiet_that_may_have_been_lost_is_said_again() {
    let mut world = World::following(false);
    world.feed(vec![moving("other", 7)]);
    world.reconnect(5);
    assert_eq!(quiets(&world), [("other".into(), 7, 1)]);
    // The drain ends while the connection is down.
    world.own("k", 1, 8);
    let Answer::Owner(pick) = world.pick("k") else {
        panic!()
    };
    world.feed(vec![moving("k", 8)]);
    world.machine.disconnected(world.now);
    drop(pick);
    world.tick(10);
    world.reconnect(5);
    assert_eq!(quiets(&world).len(), 2);
}

#[test]
fn i9_a_late_move_of_an_older_epoch_is_ignored() {
    let mut world = World::following(true);
    world.own("k", 1, 8);
    world.feed(vec![moving("k", 7)]);
    assert!(matches!(world.look("k"), Answer::Owner(_)));
    world.feed(vec![owner("k", 6, 2), free("k", 7)]);
    assert!(matches!(world.look("k"), Answer::Owner(pick) if pick.epoch == 8));
}

#[test]
fn m6_a_shard_set_free_is_asked_for_by_who_waits() {
    let mut world = World::following(true);
    world.own("k", 1, 8);
    world.feed(vec![moving("k", 8)]);
    world.park("k", 1, 5_000);
    world.feed(vec![free("k", 8)]);
    world.tick(0);
    assert_eq!(world.resolves().len(), 1);
    world.answer(ResolveOutcome::Owner, 2, 30);
    assert_eq!(world.woken(), [(1, StreamEvent::Answer)]);
}

#[test]
fn an_owner_of_a_shard_nobody_holds_is_not_remembered() {
    let mut world = World::following(true);
    world.feed(vec![owner("k", 20, 2)]);
    assert_eq!(world.shared.totals.entries(), 0);
}

#[test]
fn m1_one_entry_ends_every_answer_of_a_server() {
    let mut world = World::following(true);
    for n in 0..50 {
        world.own(&format!("k{n}"), 1, 8);
    }
    world.feed(vec![ended("a", 1, After::Released)]);
    for n in 0..50 {
        assert!(matches!(world.look(&format!("k{n}")), Answer::Miss));
    }
    assert!(matches!(
        world.world().pick_server(1, world.now),
        Answer::Refused {
            reason: Refusal::ServerGone,
            ..
        }
    ));
}

#[test]
fn m4_an_expired_server_loses_its_streams_at_once_and_then_is_quiet() {
    let mut world = World::following(false);
    world.own("k", 1, 8);
    let Answer::Owner(pick) = world.pick("k") else {
        panic!()
    };
    let Answer::Owner(keyless) = world.world().pick_server(1, world.now) else {
        panic!()
    };
    world.open("k", 8, 1, 1, StreamKind::Stream);
    world.open("", 0, 1, 2, StreamKind::WebSocket);
    world.feed(vec![ended("a", 1, After::Expired)]);
    let mut woken = world.woken();
    woken.sort_by_key(|(stream, _)| *stream);
    assert_eq!(
        woken,
        [
            (1, StreamEvent::Reset(Refusal::OutcomeUnknown)),
            (2, StreamEvent::CloseMoved)
        ]
    );
    drop(pick);
    world.close(1);
    world.close(2);
    assert_eq!(quiets(&world), []);
    drop(keyless);
    world.tick(10);
    assert_eq!(quiets(&world), [(String::new(), 0, 1)]);
}

#[test]
fn m4_an_end_or_a_move_told_again_after_a_resume_is_not_quiet_before_its_time() {
    let mut world = World::following(false);
    world.own("k", 1, 8);
    world.own("l", 2, 9);
    let picks = (world.pick("k"), world.pick("l"));
    let (end, mut of_l) = (ended("a", 1, After::Released), moving("l", 9));
    if let Entry::ShardMoving(moving) = &mut of_l {
        moving.incarnation = 2;
    }
    world.feed(vec![end.clone(), of_l.clone()]);
    world.reconnect(5);
    world
        .frame(batch(13, 13, vec![end.clone(), of_l.clone()], None))
        .unwrap();
    assert_eq!(quiets(&world), []);
    drop(picks);
    world.shared.signal.check_quiet();
    world.tick(10);
    let mut said = quiets(&world);
    said.sort();
    assert_eq!(said, [(String::new(), 0, 1), ("l".into(), 9, 2)]);
    // And told once more when all is quiet: said again at once.
    world.reconnect(5);
    world.frame(batch(13, 13, vec![end, of_l], None)).unwrap();
    assert_eq!(quiets(&world).len(), 4);
}

#[test]
fn m4_an_unknown_server_that_ends_is_quiet_at_once() {
    let mut world = World::following(false);
    world.feed(vec![ended("z", 99, After::Released)]);
    assert_eq!(quiets(&world), [(String::new(), 0, 99)]);
}

#[test]
fn m4_a_released_server_may_finish_within_the_drain_time() {
    let mut world = World::following(false);
    world.own("k", 1, 8);
    world.open("k", 8, 1, 1, StreamKind::Stream);
    world.feed(vec![ended("a", 1, After::Released)]);
    assert_eq!(world.woken(), []);
    world.tick(2_000);
    assert_eq!(world.woken(), [(1, StreamEvent::Reset(Refusal::Moving))]);
}

#[test]
fn p7_a_goodbye_is_said_only_when_nothing_is_open() {
    let mut world = World::following(false);
    world.own("k", 1, 8);
    let pick = world.pick("k");
    assert!(!world.machine.goodbye());
    drop(pick);
    world.open("k", 8, 1, 1, StreamKind::Stream);
    assert!(!world.machine.goodbye());
    world.close(1);
    assert!(world.machine.goodbye());
}
