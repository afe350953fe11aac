//! Streams that are held until their shard has an answer; one flight per shard.

use std::collections::{BTreeSet, HashMap};

use crate::config::Limits;
use crate::shard::Shard;
use crate::waker::StreamId;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// The first for this shard: somebody has to ask.
    First,
    Another,
    Full,
}

#[derive(Debug)]
pub(crate) struct Parking {
    waiting: HashMap<Shard, Vec<StreamId>>,
    streams: HashMap<StreamId, (Shard, u64)>,
    deadlines: BTreeSet<(u64, StreamId)>,
    parked_max: usize,
    per_shard_max: usize,
    flights_max: usize,
}

impl Parking {
    pub fn new(limits: &Limits) -> Parking {
        Parking {
            waiting: HashMap::new(),
            streams: HashMap::new(),
            deadlines: BTreeSet::new(),
            parked_max: limits.parked,
            per_shard_max: limits.parked_per_shard,
            flights_max: limits.flights,
        }
    }

    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Holds the stream; one that is held already is moved.
    pub fn join(&mut self, shard: Shard, stream: StreamId, deadline: u64) -> Joined {
        self.leave(stream);
        if self.streams.len() >= self.parked_max {
            return Joined::Full;
        }
        let flights = self.waiting.len();
        let joined = match self.waiting.get_mut(&shard) {
            Some(streams) if streams.len() >= self.per_shard_max => return Joined::Full,
            Some(streams) => {
                streams.push(stream);
                Joined::Another
            }
            None if flights >= self.flights_max => return Joined::Full,
            None => {
                self.waiting.insert(shard.clone(), vec![stream]);
                Joined::First
            }
        };
        self.streams.insert(stream, (shard, deadline));
        self.deadlines.insert((deadline, stream));
        joined
    }

    /// `true` if it was held.
    pub fn leave(&mut self, stream: StreamId) -> bool {
        let Some((shard, deadline)) = self.streams.remove(&stream) else {
            return false;
        };
        self.deadlines.remove(&(deadline, stream));
        if let Some(streams) = self.waiting.get_mut(&shard) {
            streams.retain(|other| *other != stream);
            if streams.is_empty() {
                self.waiting.remove(&shard);
            }
        }
        true
    }

    /// Takes the stream back if nobody else waits for the shard; nobody has asked for it yet.
    pub fn leave_if_alone(&mut self, shard: &Shard, stream: StreamId) -> bool {
        self.waiting
            .get(shard)
            .is_some_and(|streams| streams.len() == 1)
            && self.leave(stream)
    }

    pub fn is_waiting(&self, shard: &Shard) -> bool {
        self.waiting.contains_key(shard)
    }

    /// The shard has an answer: all its streams go.
    pub fn release(&mut self, shard: &Shard) -> Vec<StreamId> {
        let streams = self.waiting.remove(shard).unwrap_or_default();
        for stream in &streams {
            if let Some((_, deadline)) = self.streams.remove(stream) {
                self.deadlines.remove(&(deadline, *stream));
            }
        }
        streams
    }

    /// Everything that waits, to be asked for anew.
    pub fn shards(&self) -> Vec<Shard> {
        self.waiting.keys().cloned().collect()
    }

    pub fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Streams whose time is over.
    pub fn expire(&mut self, now: u64) -> Vec<(StreamId, Shard)> {
        let mut expired = Vec::new();
        while let Some((deadline, stream)) = self.deadlines.first().copied() {
            if deadline > now {
                break;
            }
            if let Some((shard, _)) = self.streams.get(&stream).cloned() {
                expired.push((stream, shard));
            }
            if !self.leave(stream) {
                self.deadlines.remove(&(deadline, stream));
            }
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parking() -> Parking {
        Parking::new(&Limits {
            parked: 5,
            parked_per_shard: 3,
            flights: 2,
            ..Limits::default()
        })
    }

    #[test]
    fn the_first_asks_and_all_are_released() {
        let mut parking = parking();
        let shard = Shard::new(0, b"k");
        assert_eq!(parking.join(shard.clone(), StreamId(1), 10), Joined::First);
        assert_eq!(
            parking.join(shard.clone(), StreamId(2), 10),
            Joined::Another
        );
        assert_eq!(parking.release(&shard), [StreamId(1), StreamId(2)]);
        assert_eq!((parking.len(), parking.next_deadline()), (0, None));
        assert_eq!(parking.join(shard, StreamId(3), 10), Joined::First);
    }

    #[test]
    fn every_limit_holds() {
        let mut parking = parking();
        for n in 0..3 {
            assert_ne!(
                parking.join(Shard::new(0, b"a"), StreamId(n), 10),
                Joined::Full
            );
        }
        assert_eq!(
            parking.join(Shard::new(0, b"a"), StreamId(3), 10),
            Joined::Full
        );
        assert_eq!(
            parking.join(Shard::new(0, b"b"), StreamId(4), 10),
            Joined::First
        );
        assert_eq!(
            parking.join(Shard::new(0, b"c"), StreamId(5), 10),
            Joined::Full
        );
        assert_eq!(
            parking.join(Shard::new(0, b"b"), StreamId(6), 10),
            Joined::Another
        );
        assert_eq!(
            parking.join(Shard::new(0, b"b"), StreamId(7), 10),
            Joined::Full
        );
        assert_eq!(parking.len(), 5);
    }

    #[test]
    fn expiry_takes_what_is_due_in_order() {
        let mut parking = parking();
        let shard = Shard::new(0, b"a");
        parking.join(shard.clone(), StreamId(1), 30);
        parking.join(shard.clone(), StreamId(2), 10);
        parking.join(shard.clone(), StreamId(3), 20);
        assert!(parking.leave(StreamId(3)) && !parking.leave(StreamId(3)));
        assert_eq!(parking.expire(25), [(StreamId(2), shard.clone())]);
        assert_eq!(parking.next_deadline(), Some(30));
        assert_eq!(parking.expire(30), [(StreamId(1), shard.clone())]);
        assert!(!parking.is_waiting(&shard));
    }
}
