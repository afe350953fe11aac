use belay_proto::v1::FeedLease;
use belay_proto::v1::frame::Body;

use super::harness::*;
use crate::answer::{Answer, Refusal, StreamKind};
use crate::waker::StreamEvent;

fn nonces(world: &World) -> Vec<u32> {
    world.sent(|body| match body {
        Body::RenewFeedLease(renewal) => Some(renewal.nonce),
        _ => None,
    })
}

fn is_over(world: &World) -> bool {
    matches!(
        world.look("k"),
        Answer::Refused {
            reason: Refusal::LeaseOver,
            ..
        }
    )
}

#[test]
fn s2_the_lease_counts_from_before_the_renewal_was_sent() {
    let mut world = World::following(true);
    let sent_at = world.now;
    world.own("k", 1, 8);
    world.now = sent_at + F_MS - MARGIN_MS - 1;
    assert!(matches!(world.look("k"), Answer::Owner(_)));
    world.now += 1;
    assert!(is_over(&world));
    assert!(world.world().active_servers(world.now).is_empty());
}

#[test]
fn s2_an_answer_that_took_long_extends_from_its_sending() {
    let mut world = World::following(true);
    world.tick(3_000);
    let (nonce, sent_at) = (*nonces(&world).last().unwrap(), world.now);
    world.now += 4_000;
    world
        .frame(Body::FeedLease(FeedLease {
            nonce,
            revision: 10,
        }))
        .unwrap();
    assert_eq!(world.world().lease_until(), sent_at + F_MS - MARGIN_MS);
    // Answered once; an unknown or repeated nonce means nothing.
    world.now += 1_000;
    world
        .frame(Body::FeedLease(FeedLease {
            nonce,
            revision: 10,
        }))
        .unwrap();
    world
        .frame(Body::FeedLease(FeedLease {
            nonce: 4_711,
            revision: 10,
        }))
        .unwrap();
    assert_eq!(world.world().lease_until(), sent_at + F_MS - MARGIN_MS);
}

#[test]
fn p1_a_lease_counts_only_when_its_revision_is_applied() {
    let mut world = World::following(true);
    let before = world.world().lease_until();
    world.tick(3_000);
    let nonce = *nonces(&world).last().unwrap();
    world
        .frame(Body::FeedLease(FeedLease {
            nonce,
            revision: 13,
        }))
        .unwrap();
    assert_eq!(world.world().lease_until(), before);
    world.feed(vec![server("c", 12)]);
    assert_eq!(world.world().lease_until(), before + 3_000);
}

#[test]
fn p1_renewed_every_third_of_the_smallest_f_and_no_more_often() {
    let mut world = World::following(true);
    world.tick(2_999);
    assert_eq!(nonces(&world).len(), 0);
    assert_eq!(world.machine.wake_at(world.now), world.now + 1);
    world.tick(1);
    world.tick(1);
    assert_eq!(nonces(&world).len(), 1);
}

#[test]
fn p1_at_the_end_every_stream_to_an_unguarded_service_is_reset_once() {
    let mut world = World::following(false);
    world.own("k", 1, 8);
    world.open("k", 8, 1, 5, StreamKind::WebSocket);
    world.open("", 0, 2, 6, StreamKind::Stream);
    world.machine.disconnected(world.now);
    let end = world.world().lease_until();
    world.tick(end - world.now - 1);
    assert_eq!(world.woken(), []);
    world.tick(1);
    world.tick(1_000);
    let mut woken = world.woken();
    woken.sort_by_key(|(stream, _)| *stream);
    assert_eq!(
        woken,
        [5, 6].map(|stream| (stream, StreamEvent::Reset(Refusal::LeaseOver)))
    );
}

#[test]
fn p1_guarded_streams_outlive_the_lease() {
    let mut world = World::following(true);
    world.open("k", 8, 1, 5, StreamKind::WebSocket);
    world.machine.disconnected(world.now);
    world.tick(F_MS * 2);
    assert_eq!(world.woken(), []);
}

#[test]
fn p7_a_lost_connection_ends_nothing() {
    let mut world = World::following(true);
    world.own("k", 1, 8);
    world.machine.disconnected(world.now);
    world.tick(6_000);
    assert!(matches!(world.look("k"), Answer::Owner(_)));
    assert!(matches!(
        world.look("new"),
        Answer::Refused {
            reason: Refusal::CoordinatorSilent,
            ..
        }
    ));
    world.reconnect(5);
    assert!(matches!(world.look("new"), Answer::Miss));
    world.grant();
    world.now += F_MS - MARGIN_MS - 1;
    assert!(matches!(world.look("k"), Answer::Owner(_)));
}

#[test]
fn a_new_service_is_leased_from_the_newest_renewal() {
    let mut world = World::following(true);
    world.feed(vec![service("more", true)]);
    assert!(matches!(
        world.services.named("more").look(b"k", world.now, false),
        Answer::Miss
    ));
}
