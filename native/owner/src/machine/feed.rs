//! Applies the feed: batches in order, snapshots at once (P2, F1).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use belay_proto::v1::feed_entry::Entry;
use belay_proto::v1::{
    After, FeedBatch, FeedEntry, ServerEndedEntry, ServerEntry, ServerState, ServiceEntry,
    ShardFree, ShardMoving, ShardOwner,
};

use crate::answer::Server;
use crate::counters::add;
use crate::service_state::{Facts, ServiceState};
use crate::shard::Shard;
use crate::waker::Level;

use super::moves::{Departure, End};
use super::resolved::Owner;
use super::{Broken, Machine};

impl Machine {
    pub(super) fn feed_batch(&mut self, now: u64, batch: FeedBatch) -> Result<(), Broken> {
        if batch.term != 0 && batch.term < self.session.term {
            let why = format!(
                "a batch of term {} after term {}",
                batch.term, self.session.term
            );
            return Err(self.out_of_step(why));
        }
        if batch.snapshot {
            return self.stage(now, batch);
        }
        let session = &mut self.session;
        let follows =
            batch.previous == session.applied || session.resumed_from == Some(batch.previous);
        if session.needs_snapshot
            || session.staged.is_some()
            || !follows
            || batch.revision < session.applied
        {
            let why = format!(
                "a batch from revision {} to {} while {} is applied: a snapshot is needed",
                batch.previous, batch.revision, session.applied
            );
            return Err(self.out_of_step(why));
        }
        session.resumed_from = None;
        let revokes = batch.entries.iter().any(is_revoking);
        for entry in batch.entries {
            self.apply(now, entry)?;
        }
        self.session.applied = batch.revision;
        self.note_revision(batch.revision);
        if revokes {
            self.say_dropped();
            self.check_quiet(now);
        }
        self.count_lease(now);
        Ok(())
    }

    /// Until its end, what was known before is still believed, as long as the lease lives.
    fn stage(&mut self, now: u64, batch: FeedBatch) -> Result<(), Broken> {
        let staged = self.session.staged.get_or_insert_default();
        staged.extend(batch.entries);
        if staged.len() > self.shared.limits.snapshot_entries {
            let most = self.shared.limits.snapshot_entries;
            return Err(self.out_of_step(format!("a snapshot of more than {most} entries")));
        }
        if batch.complete {
            let entries = self.session.staged.take().unwrap_or_default();
            self.apply_snapshot(now, entries, batch.revision)?;
        }
        Ok(())
    }

    fn apply_snapshot(
        &mut self,
        now: u64,
        entries: Vec<FeedEntry>,
        revision: u64,
    ) -> Result<(), Broken> {
        let same_store = self.session.generation == self.session.welcomed_generation;
        if !same_store {
            // Another store: nothing that the old one said holds.
            self.void_leases();
            self.session.seen = 0;
        }
        let mut living: HashMap<String, HashSet<u64>> = HashMap::new();
        for entry in &entries {
            match &entry.entry {
                Some(Entry::Service(service)) => {
                    living.entry(service.name.clone()).or_default();
                }
                Some(Entry::Server(server)) => {
                    living
                        .entry(server.service.clone())
                        .or_default()
                        .insert(server.incarnation);
                }
                _ => {}
            }
        }
        self.end_drains_of_servers();
        let mut unsure = Vec::new();
        for service in self.services.all().iter() {
            let keep = living.get(&*service.name);
            if keep.is_none() {
                service.undefine();
            }
            let is_kept = |incarnation: u64| {
                same_store && keep.is_some_and(|keep| keep.contains(&incarnation))
            };
            let ended = service.servers.write().end_all_but(is_kept);
            for record in ended {
                self.server_ended(
                    now,
                    service,
                    record,
                    End {
                        grace_ms: 0,
                        holds_dropped: true,
                    },
                );
            }
            let keys = service.map.forget_all(&self.shared.totals);
            unsure.extend(keys.iter().map(|key| Shard::new(service.id, key)));
        }
        for entry in entries {
            self.apply(now, entry)?;
        }
        let session = &mut self.session;
        session.generation.clone_from(&session.welcomed_generation);
        session.needs_snapshot = false;
        session.resumed_from = None;
        session.applied = revision;
        self.note_revision(revision);
        self.shared.back_off.lock().clear();
        self.shared.set_synced();
        self.log(
            Level::Info,
            format!("applied a snapshot of revision {revision}"),
        );
        self.say_dropped();
        self.check_quiet(now);
        self.say_quiet_again(now);
        self.count_lease(now);
        self.renew(now);
        // I1u: what is still open was picked on answers that may have changed unseen.
        for shard in unsure {
            self.ask(now, &shard, revision, false);
        }
        self.ask_all(now);
        self.claim_all();
        Ok(())
    }

    fn apply(&mut self, now: u64, entry: FeedEntry) -> Result<(), Broken> {
        match entry.entry {
            Some(Entry::Service(entry)) => self.service_entry(&entry),
            Some(Entry::ServiceRemoved(entry)) => {
                if let Some(service) = self.services.find(&entry.name) {
                    self.service_removed(now, &service);
                }
            }
            Some(Entry::Server(entry)) => self.server_entry(entry),
            Some(Entry::ServerEnded(entry)) => self.server_ended_entry(now, &entry),
            Some(Entry::ShardMoving(entry)) => self.shard_moving(now, &entry),
            Some(Entry::ShardOwner(entry)) => return self.shard_owner(now, &entry),
            Some(Entry::ShardFree(entry)) => self.shard_free(now, &entry),
            // P2: what a later version adds may revoke something.
            None => {
                return Err(Broken(
                    "a feed entry that this version does not know".to_owned(),
                ));
            }
        }
        Ok(())
    }

    fn service_entry(&mut self, entry: &ServiceEntry) {
        let service = self.services.named(&entry.name);
        let is_new = !service.is_defined();
        service.define(Facts {
            feed_lease_ms: entry.feed_lease_ms.into(),
            margin_ms: entry.margin_ms.into(),
            idle_ms: entry.idle_ms.into(),
            drain_ms: entry.drain_ms,
            park_ms: entry.park_ms,
            guarded: entry.guarded,
        });
        self.set_lease_interval();
        self.extend_lease(&service);
        self.shared.back_off.lock().clear();
        if is_new {
            self.shared.hosts.lock().forget_report(service.id);
            self.report_hosts(service.id);
        }
    }

    fn service_removed(&mut self, now: u64, service: &Arc<ServiceState>) {
        service.undefine();
        let ended = service.servers.write().end_all_but(|_| false);
        for record in ended {
            self.server_ended(
                now,
                service,
                record,
                End {
                    grace_ms: 0,
                    holds_dropped: false,
                },
            );
        }
        service.map.forget_all(&self.shared.totals);
        self.set_lease_interval();
    }

    fn server_entry(&mut self, entry: ServerEntry) {
        let draining = entry.state() == ServerState::Draining;
        let service = self.services.named(&entry.service);
        let server = Server {
            id: entry.server_id.into(),
            incarnation: entry.incarnation,
            address: entry.address.into(),
            zone: entry.zone.into(),
        };
        service.servers.write().put(server, draining);
        // «no-server» and «full» may have ended.
        self.shared.back_off.lock().clear();
    }

    fn server_ended_entry(&mut self, now: u64, entry: &ServerEndedEntry) {
        let service = self.services.named(&entry.service);
        let record = {
            let mut servers = service.servers.write();
            if entry.after() == After::Expired {
                servers.set_expired(entry.incarnation);
            }
            servers.end(&entry.server_id, entry.incarnation)
        };
        let Some(record) = record else {
            // Told again after a resume: what is still open to it is being waited for.
            let known = self.moves.ending.contains_key(&entry.incarnation);
            if !known && !service.is_guarded() && !self.session.needs_snapshot {
                self.nothing_open_to(now, &service, entry.incarnation);
            }
            return;
        };
        let grace_ms = if entry.after() == After::Released {
            service.facts().drain_ms
        } else {
            0
        };
        self.server_ended(
            now,
            &service,
            record,
            End {
                grace_ms,
                holds_dropped: false,
            },
        );
        for shard in self.asks.waiting_of(service.id) {
            self.asks.schedule(&shard, now);
        }
    }

    fn shard_moving(&mut self, now: u64, entry: &ShardMoving) {
        let Some((service, shard)) = self.shard(&entry.service, &entry.key) else {
            return;
        };
        add(&self.shared.counters.moves_seen, 1);
        let departure = Departure {
            epoch: entry.epoch,
            incarnation: Some(entry.incarnation),
            drain_ms: Some(entry.drain_ms),
        };
        self.depart(now, &service, &shard, departure);
    }

    fn shard_owner(&mut self, now: u64, entry: &ShardOwner) -> Result<(), Broken> {
        let Some((service, shard)) = self.shard(&entry.service, &entry.key) else {
            return Ok(());
        };
        let hash = service.map.hash(&shard.key);
        let held = service.map.with(hash, &shard.key, |entry| entry.is_some());
        if held || self.asks.contains(&shard) || self.shared.parking.lock().is_waiting(&shard) {
            let owner = Owner {
                epoch: entry.epoch,
                incarnation: entry.incarnation,
                since: now,
            };
            if !self.learn_owner(now, &service, &shard, owner) {
                let why = format!(
                    "ShardOwner names incarnation {}, which the feed did not",
                    entry.incarnation
                );
                return Err(self.out_of_step(why));
            }
            self.asks.finish(&shard);
            self.release(&shard);
        }
        self.superseded(now, &service, &shard, entry.epoch);
        Ok(())
    }

    fn shard_free(&mut self, now: u64, entry: &ShardFree) {
        let Some((service, shard)) = self.shard(&entry.service, &entry.key) else {
            return;
        };
        let hash = service.map.hash(&shard.key);
        let newer = service.map.with(hash, &shard.key, |held| {
            held.is_some_and(|held| held.epoch > entry.epoch)
        });
        if newer {
            return;
        }
        service.map.remove(&shard.key, &self.shared.totals);
        self.superseded(now, &service, &shard, entry.epoch.saturating_add(1));
        if self.shared.parking.lock().is_waiting(&shard) {
            self.asks.schedule(&shard, now);
            self.ask(now, &shard, 0, false);
        }
    }

    fn shard(&self, service: &str, key: &str) -> Option<(Arc<ServiceState>, Shard)> {
        let service = self.services.find(service)?;
        let shard = Shard::new(service.id, key.as_bytes());
        Some((service, shard))
    }

    /// P3: workers read the one map under its locks, so what is applied is dropped everywhere.
    pub(super) fn say_dropped(&mut self) {
        if self.session.is_in_step() {
            let revision = self.moves.dropped(self.session.applied);
            self.send(belay_proto::v1::frame::Body::Dropped(
                belay_proto::v1::Dropped { revision },
            ));
        }
    }
}

/// Others wait for the acknowledgement of these.
fn is_revoking(entry: &FeedEntry) -> bool {
    matches!(
        entry.entry,
        Some(
            Entry::ShardMoving(_)
                | Entry::ServerEnded(_)
                | Entry::Service(_)
                | Entry::ServiceRemoved(_)
        )
    )
}
