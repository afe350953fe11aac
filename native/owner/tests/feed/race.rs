use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use belay_owner::{Answer, Opened, StreamId};
use belay_proto::v1::feed_entry::Entry;
use belay_proto::v1::frame::Body;
use belay_proto::v1::{After, ShardMoving, ShardOwner};

use super::peer::*;

const MOVES: u64 = 300;

/// I1u: when `Quiet` for an epoch has been heard, no worker holds an attempt on it, nor will one
/// begin.
#[test]
fn i1u_quiet_is_never_said_while_an_attempt_is_open() {
    let (_coordinator, proxy, _ear, mut peer) = following(false);
    let world = proxy.service("world");
    let open: Vec<AtomicI64> = (0..=MOVES).map(|_| AtomicI64::new(0)).collect();
    let (done, picks, streams) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(1));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (world, proxy) = (world.clone(), proxy.clone());
            let (open, done, picks, streams) = (&open, &done, &picks, &streams);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    match world.pick(b"k") {
                        Answer::Owner(pick) => {
                            // Epochs are 1000, 1001, … in this test.
                            let at = usize::try_from(pick.epoch - 1_000).unwrap();
                            open[at].fetch_add(1, Ordering::SeqCst);
                            let stream = StreamId(streams.fetch_add(1, Ordering::Relaxed));
                            let opened = world.open_attempt(b"k", &pick, stream);
                            picks.fetch_add(1, Ordering::Relaxed);
                            std::thread::yield_now();
                            open[at].fetch_sub(1, Ordering::SeqCst);
                            drop(pick);
                            if opened == Opened::Registered {
                                proxy.close(stream);
                            }
                        }
                        _ => std::thread::yield_now(),
                    }
                }
            });
        }
        let first = world.clone();
        assert_eq!(
            first.park(b"k", StreamId(u64::MAX), 60_000),
            belay_owner::Parked::Waiting
        );
        let ask = peer.resolve();
        peer.own(&ask, 1, 1_000);
        for n in 0..MOVES {
            let epoch = 1_000 + n;
            await_true("some picks", || picks.swap(0, Ordering::Relaxed) > 0);
            let (service, key): (String, String) = ("world".into(), "k".into());
            let (from, to) = (n % 2 + 1, (n + 1) % 2 + 1);
            let entry = ShardMoving {
                service: service.clone(),
                key: key.clone(),
                epoch,
                incarnation: from,
                drain_ms: 60_000,
            };
            peer.feed(2_000 + 2 * n, vec![Entry::ShardMoving(entry)]);
            let quiet = peer.expect(|body| {
                if let Body::Quiet(quiet) = body {
                    Some(quiet.epoch)
                } else {
                    None
                }
            });
            assert_eq!(quiet, epoch);
            assert_eq!(
                open[usize::try_from(n).unwrap()].load(Ordering::SeqCst),
                0,
                "an attempt is open after quiet"
            );
            let entry = ShardOwner {
                service,
                key,
                epoch: epoch + 1,
                incarnation: to,
                after: After::Released.into(),
            };
            peer.feed(2_001 + 2 * n, vec![Entry::ShardOwner(entry)]);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(open.iter().all(|count| count.load(Ordering::SeqCst) == 0));
    assert_eq!(proxy.stats().moves_seen, MOVES);
}
