//! The second acknowledgement: `Quiet`, when no stream is left that was picked on an old answer
//! (P3).

use std::sync::atomic::Ordering;

use belay_proto::v1::Quiet;
use belay_proto::v1::frame::Body;

use crate::service_state::ServiceState;
use crate::shard::Shard;

use super::Machine;
use super::moves::Ending;

/// `Quiet`s that are said again on the next connection, as they may have been lost with the last.
const SAID_MAX: usize = 10_000;
/// Longer than any coordinator waits for one: W(F) of any sensible F.
const SAID_MS_MAX: u64 = 600_000;
/// Shortest time between two looks through all moves.
const CHECK_MS: u64 = 5;

impl Machine {
    /// A count fell to zero; looking through all moves each time would cost too much in a drain of
    /// thousands.
    pub(super) fn check_quiet_soon(&mut self, now: u64) {
        let at = now.max(self.moves.checked_at + CHECK_MS);
        self.moves.check_at.get_or_insert(at);
    }

    /// Says `Quiet` for what nothing is left of.
    pub(super) fn check_quiet(&mut self, now: u64) {
        self.moves.check_at = None;
        self.moves.checked_at = now;
        if self.moves.wanted() == 0 {
            return;
        }
        let was_held = self.moves.is_held();
        self.quiet_shards(now);
        self.quiet_servers(now);
        self.want_quiet();
        if was_held && !self.moves.is_held() {
            self.say_dropped();
        }
    }

    fn quiet_shards(&mut self, now: u64) {
        let draining = self.moves.draining.iter();
        let quiet = draining.filter(|(shard, draining)| self.is_quiet(shard, draining.epoch));
        let quiet: Vec<Shard> = quiet.map(|(shard, _)| shard.clone()).collect();
        for shard in quiet {
            let draining = self.moves.draining.remove(&shard);
            if let (Some(draining), Some(service)) = (draining, self.services.get(shard.service)) {
                let key = shard.key_text().unwrap_or_default();
                let mut quiet = quiet_of(&service, draining.incarnation);
                (quiet.key, quiet.epoch) = (key, draining.epoch);
                self.say_quiet(now, quiet);
            }
        }
    }

    fn quiet_servers(&mut self, now: u64) {
        let is_quiet = |ending: &Ending| {
            let incarnation = ending.record.server.incarnation;
            ending.record.in_flight() == 0
                && self.streams_to(&ending.service, incarnation).is_empty()
        };
        let ending = self.moves.ending.iter();
        let quiet = ending.filter(|(_, ending)| is_quiet(ending));
        let quiet: Vec<u64> = quiet.map(|(incarnation, _)| *incarnation).collect();
        for incarnation in quiet {
            if let Some(ending) = self.moves.ending.remove(&incarnation) {
                self.say_quiet(now, quiet_of(&ending.service, incarnation));
            }
        }
    }

    fn is_quiet(&self, shard: &Shard, epoch: u64) -> bool {
        let Some(service) = self.services.get(shard.service) else {
            return true;
        };
        let open = self.shared.streams.of_shard(shard);
        service.map.in_flight(&shard.key, epoch) == 0 && open.iter().all(|open| open.epoch > epoch)
    }

    /// An incarnation ended that was never known here.
    pub(super) fn nothing_open_to(&mut self, now: u64, service: &ServiceState, incarnation: u64) {
        self.say_quiet(now, quiet_of(service, incarnation));
    }

    fn say_quiet(&mut self, now: u64, quiet: Quiet) {
        if self.moves.said.len() >= SAID_MAX {
            self.moves.said.pop_front();
        }
        self.moves.said.push_back((now, quiet.clone()));
        if self.session.is_in_step() {
            self.send(Body::Quiet(quiet));
        }
    }

    /// One may have been lost with the connection; it is idempotent.
    pub(super) fn say_quiet_again(&mut self, now: u64) {
        let said = &mut self.moves.said;
        while said
            .front()
            .is_some_and(|(at, _)| now.saturating_sub(*at) > SAID_MS_MAX)
        {
            said.pop_front();
        }
        let again: Vec<Quiet> = said.iter().map(|(_, quiet)| quiet.clone()).collect();
        for quiet in again {
            self.send(Body::Quiet(quiet));
        }
    }

    /// Lets workers know whether closing a stream is worth a word.
    pub(super) fn want_quiet(&self) {
        self.shared
            .quiet_wanted
            .store(self.moves.wanted() > 0, Ordering::SeqCst);
    }
}

/// Of a whole incarnation.
fn quiet_of(service: &ServiceState, incarnation: u64) -> Quiet {
    Quiet {
        service: service.name.to_string(),
        incarnation,
        ..Quiet::default()
    }
}
