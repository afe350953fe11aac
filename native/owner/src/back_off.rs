//! Refusals that are repeated for up to a second instead of asking again (P5).

use std::collections::{HashMap, VecDeque};

use crate::answer::Refusal;
use crate::shard::Shard;

/// Longest time that a refusal is repeated.
pub(crate) const BACK_OFF_MS_MAX: u32 = 1_000;

#[derive(Debug)]
pub(crate) struct BackOff {
    refusals: HashMap<Shard, (Refusal, u64)>,
    order: VecDeque<(u64, Shard)>,
    max: usize,
}

impl BackOff {
    pub fn new(max: usize) -> BackOff {
        BackOff {
            refusals: HashMap::new(),
            order: VecDeque::new(),
            max,
        }
    }

    /// Repeats `refusal` until `now + ms`; when full, the oldest is forgotten.
    pub fn put(&mut self, shard: Shard, refusal: Refusal, now: u64, ms: u32) {
        let until = now + u64::from(ms.min(BACK_OFF_MS_MAX));
        self.expire(now);
        while self.order.len() >= self.max {
            self.drop_oldest();
        }
        self.order.push_back((until, shard.clone()));
        self.refusals.insert(shard, (refusal, until));
    }

    /// The refusal and how long it will still be repeated.
    pub fn get(&self, shard: &Shard, now: u64) -> Option<(Refusal, u32)> {
        let (refusal, until) = *self.refusals.get(shard)?;
        let left = until.checked_sub(now).filter(|left| *left > 0)?;
        Some((refusal, u32::try_from(left).unwrap_or(BACK_OFF_MS_MAX)))
    }

    pub fn is_empty(&self) -> bool {
        self.refusals.is_empty()
    }

    pub fn remove(&mut self, shard: &Shard) {
        self.refusals.remove(shard);
    }

    pub fn clear(&mut self) {
        self.refusals.clear();
        self.order.clear();
    }

    pub fn expire(&mut self, now: u64) {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((until, shard)) = self.order.pop_front()
            && self
                .refusals
                .get(&shard)
                .is_some_and(|(_, newest)| *newest <= until)
        {
            self.refusals.remove(&shard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p5_a_refusal_is_repeated_for_a_second_at_most() {
        let mut back_off = BackOff::new(2);
        let shard = Shard::new(0, b"k");
        back_off.put(shard.clone(), Refusal::Full, 100, 60_000);
        assert_eq!(back_off.get(&shard, 1_099), Some((Refusal::Full, 1)));
        assert_eq!(back_off.get(&shard, 1_100), None);
        back_off.put(Shard::new(0, b"l"), Refusal::Full, 200, 500);
        back_off.put(Shard::new(0, b"m"), Refusal::Full, 200, 500);
        assert_eq!(back_off.get(&shard, 201), None);
        back_off.expire(5_000);
        assert!(back_off.is_empty());
    }
}
