use belay_proto::v1::frame::Body;
use belay_proto::v1::{MintOutcome, Minted, ResolveOutcome};

use super::harness::*;
use crate::answer::{Answer, Refusal};
use crate::signal::Command;
use crate::waker::{MintResult, StreamEvent, StreamId};

fn mint(world: &mut World, key: &str, stream: u64) {
    let deadline = world.now + 2_000;
    let (shard, stream) = (world.shard(key), StreamId(stream));
    assert!(world.shared.signal.send(Command::Mint {
        shard,
        incarnation: 1,
        stream,
        deadline
    }));
    world.tick(0);
}

fn answer(world: &mut World, outcome: MintOutcome, epoch: u64) {
    let mints = world.sent(|body| match body {
        Body::Mint(mint) => Some(mint.clone()),
        _ => None,
    });
    let mint = mints.last().expect("a Mint");
    let (request_id, service, key) = (mint.request_id, mint.service.clone(), mint.key.clone());
    let revision = world.revision;
    let minted = Minted {
        request_id,
        service,
        key,
        outcome: outcome.into(),
        epoch,
        revision,
    };
    world.frame(Body::Minted(minted)).unwrap();
}

#[test]
fn a7_a_claim_makes_the_server_the_owner() {
    let mut world = World::following(true);
    world.park("s1", 9, 5_000);
    world.answer(ResolveOutcome::UnknownKey, 0, 0);
    assert!(matches!(
        world.look("s1"),
        Answer::Refused {
            reason: Refusal::UnknownKey,
            retry_after_ms: 0
        }
    ));
    mint(&mut world, "s1", 1);
    answer(&mut world, MintOutcome::Ok, 14);
    assert!(
        world
            .woken()
            .contains(&(1, StreamEvent::Minted(MintResult::Owned { epoch: 14 })))
    );
    assert!(
        matches!(world.look("s1"), Answer::Owner(pick) if pick.epoch == 14 && pick.server.incarnation == 1)
    );
}

#[test]
fn a7_conflict_gone_and_silence_are_told() {
    let mut world = World::following(true);
    mint(&mut world, "s1", 1);
    answer(&mut world, MintOutcome::Conflict, 0);
    mint(&mut world, "s2", 2);
    answer(&mut world, MintOutcome::ServerGone, 0);
    mint(&mut world, "s3", 3);
    world.tick(2_000);
    let results = [
        MintResult::Conflict,
        MintResult::ServerGone,
        MintResult::TimedOut,
    ];
    let expected: Vec<_> = (1..).zip(results.map(StreamEvent::Minted)).collect();
    assert_eq!(world.woken(), expected);
    assert!(matches!(world.look("s1"), Answer::Miss));
}

#[test]
fn a7_claims_survive_a_reconnect_and_are_bounded() {
    let mut world = World::following(true);
    mint(&mut world, "s1", 1);
    mint(&mut world, "s2", 2);
    mint(&mut world, "s3", 3);
    assert_eq!(
        world.woken(),
        [(3, StreamEvent::Minted(MintResult::TimedOut))]
    );
    world.reconnect(5);
    let keys = world.sent(|body| {
        if let Body::Mint(mint) = body {
            Some(mint.key.clone())
        } else {
            None
        }
    });
    assert_eq!(keys, ["s1", "s2"]);
}
