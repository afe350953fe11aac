//! Random histories: a small coordinator that keeps the rules, a wire that is cut at will, and two
//! invariants after every step. What the map answers is what the coordinator had committed as of
//! the last frame delivered; and when the coordinator names a new owner of an unguarded shard, no
//! attempt is open on the old one (I1u).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use belay_proto::v1::feed_entry::Entry;
use belay_proto::v1::frame::Body;
use belay_proto::v1::{After, Resolve, ResolveOutcome, ShardFree, ShardMoving, ShardOwner};
use proptest::prelude::*;

use super::harness::*;
use crate::answer::{Answer, Pick};
use crate::machine::Effect;

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone, Copy)]
enum Op {
    Register,
    End(usize, bool),
    Park(usize),
    Answer,
    Move(usize),
    Finish(usize),
    Free(usize),
    PlacedForAnother(usize),
    Deliver(usize),
    Cut { resume: bool },
    Pick(usize),
    Drop(usize),
    Tick(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..KEYS.len();
    prop_oneof![
        1 => Just(Op::Register),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(at, expired)| Op::End(at, expired)),
        4 => key.clone().prop_map(Op::Park),
        4 => Just(Op::Answer),
        2 => key.clone().prop_map(Op::Move),
        3 => key.clone().prop_map(Op::Finish),
        1 => key.clone().prop_map(Op::Free),
        1 => key.clone().prop_map(Op::PlacedForAnother),
        6 => (1usize..4).prop_map(Op::Deliver),
        1 => any::<bool>().prop_map(|resume| Op::Cut { resume }),
        4 => key.prop_map(Op::Pick),
        4 => any::<usize>().prop_map(Op::Drop),
        2 => (1u64..1_500).prop_map(Op::Tick),
    ]
}

#[derive(Debug, Clone, Default)]
struct Truth {
    /// Living incarnations.
    servers: BTreeSet<u64>,
    /// Owner, epoch, moving since which revision.
    rows: BTreeMap<usize, (u64, u64, Option<u64>)>,
}

struct History {
    world: World,
    guarded: bool,
    truth: Truth,
    /// As of the last frame delivered.
    delivered: Truth,
    wire: VecDeque<(Body, Truth)>,
    /// All entries ever, by revision.
    log: Vec<(u64, Entry)>,
    revision: u64,
    feed_last: u64,
    asks: Vec<Resolve>,
    held: Vec<(usize, Pick)>,
    /// Acknowledged by the proxy.
    dropped: u64,
    quiet: BTreeSet<(String, u64, u64)>,
    /// Ended incarnations and the revision of their end.
    ended: BTreeMap<u64, u64>,
    snapshot_revision: u64,
}

impl History {
    fn new(guarded: bool) -> History {
        let world = World::following(guarded);
        let truth = Truth {
            servers: [1, 2].into(),
            rows: BTreeMap::new(),
        };
        History {
            world,
            guarded,
            delivered: truth.clone(),
            truth,
            wire: VecDeque::new(),
            log: Vec::new(),
            revision: 10,
            feed_last: 10,
            asks: Vec::new(),
            held: Vec::new(),
            dropped: 10,
            quiet: BTreeSet::new(),
            ended: BTreeMap::new(),
            snapshot_revision: 10,
        }
    }

    fn publish(&mut self, change: impl FnOnce(&mut Truth, u64) -> Entry) {
        self.revision += 1;
        let entry = change(&mut self.truth, self.revision);
        self.log.push((self.revision, entry.clone()));
        let body = batch(self.feed_last, self.revision, vec![entry], None);
        self.feed_last = self.revision;
        self.wire.push_back((body, self.truth.clone()));
    }

    /// M4 for an old owner that is leaving.
    fn may_reassign(&self, key: usize) -> bool {
        let Some((owner, epoch, moving)) = self.truth.rows.get(&key).copied() else {
            return true;
        };
        if self.guarded {
            return moving.is_some() || !self.truth.servers.contains(&owner);
        }
        if let Some(since) = moving
            && self.dropped >= since
            && self.quiet.contains(&(KEYS[key].into(), epoch, owner))
        {
            return true;
        }
        self.ended.get(&owner).is_some_and(|end| {
            self.dropped >= *end && self.quiet.contains(&(String::new(), 0, owner))
        })
    }

    fn assign(&mut self, key: usize) -> Option<(u64, u64)> {
        let to = *self
            .truth
            .servers
            .iter()
            .nth(key % self.truth.servers.len().max(1))?;
        if !self.guarded {
            let open: Vec<u64> = self
                .held
                .iter()
                .filter(|(held, _)| *held == key)
                .map(|(_, pick)| pick.epoch)
                .collect();
            assert!(
                open.is_empty(),
                "I1u: {} gets a new owner while open on {open:?}",
                KEYS[key]
            );
        }
        Some((to, self.revision + 1))
    }

    fn answer(&mut self) {
        for ask in std::mem::take(&mut self.asks) {
            let key = KEYS.iter().position(|key| *key == ask.key).unwrap();
            let dead = |truth: &Truth, owner| !truth.servers.contains(&owner);
            let row = self.truth.rows.get(&key).copied();
            let (outcome, owner, epoch) = match row {
                Some((owner, epoch, None)) if !dead(&self.truth, owner) => {
                    (ResolveOutcome::Owner, owner, epoch)
                }
                Some((owner, _, Some(_))) if !dead(&self.truth, owner) => {
                    (ResolveOutcome::Moving, 0, 0)
                }
                Some(_) if !self.may_reassign(key) => (ResolveOutcome::NotYet, 0, 0),
                _ => match self.assign(key) {
                    None => (ResolveOutcome::NoServer, 0, 0),
                    Some((owner, epoch)) => {
                        self.revision += 1;
                        self.truth.rows.insert(key, (owner, epoch, None));
                        (ResolveOutcome::Owner, owner, epoch)
                    }
                },
            };
            let answer = resolved(&ask, outcome, owner, epoch, self.revision);
            self.wire
                .push_back((Body::Resolved(answer), self.truth.clone()));
        }
    }

    fn cut(&mut self, resume: bool) {
        self.wire.clear();
        self.asks.clear();
        self.world.machine.disconnected(self.world.now);
        self.world.machine.connected();
        self.hear();
        self.world.frame(Body::Welcome(welcome(5))).unwrap();
        self.hear();
        let applied = self.world.revision;
        let known = self.log.iter().filter(|(revision, _)| *revision > applied);
        let body = if resume {
            let entries = known.map(|(_, entry)| entry.clone()).collect();
            batch(applied, self.feed_last, entries, None)
        } else {
            let mut entries = vec![service("world", self.guarded)];
            entries.extend(
                self.truth
                    .servers
                    .iter()
                    .map(|incarnation| server(&id(*incarnation), *incarnation)),
            );
            // A shard on the move is told anew, or its quiet would never come.
            for (key, (owner, epoch, moving)) in &self.truth.rows {
                if moving.is_some() {
                    entries.push(moving_entry(*key, *owner, *epoch));
                }
            }
            self.snapshot_revision = self.feed_last;
            batch(0, self.feed_last, entries, Some(true))
        };
        self.wire.push_front((body, self.truth.clone()));
        self.deliver(1);
    }

    fn deliver(&mut self, count: usize) {
        for _ in 0..count {
            let Some((body, truth)) = self.wire.pop_front() else {
                return;
            };
            if let Body::FeedBatch(batch) = &body {
                self.world.revision = batch.revision;
            }
            self.delivered = truth;
            self.world
                .frame(body)
                .expect("the coordinator keeps the rules");
            self.hear();
        }
    }

    /// What the proxy sent reaches the coordinator at once; renewals are answered.
    fn hear(&mut self) {
        for effect in std::mem::take(&mut self.world.effects) {
            match effect {
                Effect::Send(Body::Resolve(ask)) => self.asks.push(ask),
                Effect::Send(Body::Dropped(dropped)) => self.acknowledge(dropped.revision),
                Effect::Send(Body::RenewFeedLease(renewal)) => {
                    self.acknowledge(renewal.dropped);
                    let lease = belay_proto::v1::FeedLease {
                        nonce: renewal.nonce,
                        revision: self.feed_last,
                    };
                    self.wire
                        .push_back((Body::FeedLease(lease), self.truth.clone()));
                }
                Effect::Send(Body::Quiet(quiet)) => {
                    let open = self.held.iter().any(|(key, pick)| {
                        pick.server.incarnation == quiet.incarnation
                            && (quiet.key.is_empty()
                                || (KEYS[*key] == quiet.key && pick.epoch <= quiet.epoch))
                    });
                    assert!(!open, "P3: {quiet:?} while an attempt is open");
                    self.quiet
                        .insert((quiet.key, quiet.epoch, quiet.incarnation));
                }
                _ => {}
            }
        }
    }

    /// Of an end that the snapshot comprised, a newer acknowledgement says that nothing is open.
    fn acknowledge(&mut self, dropped: u64) {
        if dropped <= self.dropped {
            return;
        }
        self.dropped = dropped;
        for (incarnation, end) in &self.ended {
            if *end <= dropped && *end <= self.snapshot_revision {
                self.quiet.insert((String::new(), 0, *incarnation));
            }
        }
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Register => self.publish(|truth, revision| {
                truth.servers.insert(revision);
                server(&id(revision), revision)
            }),
            Op::End(at, expired) => self.end(at, expired),
            Op::Park(key) => {
                let stream = 100 + key as u64;
                if matches!(self.world.look(KEYS[key]), Answer::Miss | Answer::Moving) {
                    self.world.park(KEYS[key], stream, 3_000);
                }
            }
            Op::Answer => self.answer(),
            Op::Move(key) => self.start_move(key),
            Op::Finish(key) => self.finish_move(key, true),
            Op::Free(key) => self.finish_move(key, false),
            Op::PlacedForAnother(key) => self.place_for_another(key),
            Op::Deliver(count) => self.deliver(count),
            Op::Cut { resume } => self.cut(resume),
            Op::Pick(key) => {
                if let Answer::Owner(pick) = self.world.pick(KEYS[key]) {
                    self.held.push((key, pick));
                }
            }
            Op::Drop(at) => {
                if let Some(at) = at.checked_rem(self.held.len()) {
                    self.held.swap_remove(at);
                }
            }
            Op::Tick(ms) => self.world.tick(ms),
        }
        self.world.tick(6);
        self.hear();
        self.check();
    }

    /// One server always lives.
    fn end(&mut self, at: usize, expired: bool) {
        let count = self.truth.servers.len();
        if count < 2 {
            return;
        }
        let incarnation = *self.truth.servers.iter().nth(at % count).unwrap();
        let after = if expired {
            After::Expired
        } else {
            After::Released
        };
        self.ended.insert(incarnation, self.revision + 1);
        self.publish(|truth, _| {
            truth.servers.remove(&incarnation);
            ended(&id(incarnation), incarnation, after)
        });
    }

    fn start_move(&mut self, key: usize) {
        if let Some((owner, epoch, None)) = self.truth.rows.get(&key).copied()
            && self.truth.servers.contains(&owner)
        {
            self.publish(|truth, revision| {
                truth.rows.insert(key, (owner, epoch, Some(revision)));
                moving_entry(key, owner, epoch)
            });
        }
    }

    /// To a new owner, or to nobody.
    fn finish_move(&mut self, key: usize, assigns: bool) {
        let Some((_, old, Some(_))) = self.truth.rows.get(&key).copied() else {
            return;
        };
        if !self.may_reassign(key) {
            return;
        }
        let (service, after) = ("world".into(), After::Released.into());
        let name = KEYS[key].into();
        if !assigns {
            self.publish(|truth, _| {
                truth.rows.remove(&key);
                Entry::ShardFree(ShardFree {
                    service,
                    key: name,
                    epoch: old,
                    after,
                })
            });
        } else if let Some((incarnation, epoch)) = self.assign(key) {
            self.publish(|truth, _| {
                truth.rows.insert(key, (incarnation, epoch, None));
                Entry::ShardOwner(ShardOwner {
                    service,
                    key: name,
                    epoch,
                    incarnation,
                    after,
                })
            });
        }
    }

    /// A placement is not broadcast.
    fn place_for_another(&mut self, key: usize) {
        let free = match self.truth.rows.get(&key) {
            None => true,
            Some((owner, _, _)) => !self.truth.servers.contains(owner) && self.may_reassign(key),
        };
        if free && let Some((owner, epoch)) = self.assign(key) {
            self.revision += 1;
            self.truth.rows.insert(key, (owner, epoch, None));
        }
    }

    fn check(&self) {
        for (index, key) in KEYS.iter().enumerate() {
            if let Answer::Owner(pick) = self.world.look(key) {
                let (incarnation, epoch) = (pick.server.incarnation, pick.epoch);
                let row = self.delivered.rows.get(&index).copied();
                assert_eq!(
                    row,
                    Some((incarnation, epoch, None)),
                    "{key} as of the last frame"
                );
                assert!(
                    self.delivered.servers.contains(&incarnation),
                    "{key} on an ended server"
                );
            }
        }
    }
}

fn id(incarnation: u64) -> String {
    match incarnation {
        1 => "a".into(),
        2 => "b".into(),
        other => format!("s{other}"),
    }
}

fn moving_entry(key: usize, incarnation: u64, epoch: u64) -> Entry {
    let (service, key) = ("world".into(), KEYS[key].into());
    Entry::ShardMoving(ShardMoving {
        service,
        key,
        epoch,
        incarnation,
        drain_ms: 500,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn i9_the_map_never_says_what_is_not_so(ops in prop::collection::vec(op(), 1..150), guarded in any::<bool>()) {
        let mut history = History::new(guarded);
        for op in ops {
            history.step(op);
        }
    }
}
