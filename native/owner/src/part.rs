//! One locked part of the owner map: a table of entries and an arena with their keys.

use hashbrown::HashTable;

use crate::entry::Entry;

/// Arenas below this size are not compacted.
const COMPACT_BYTES_MIN: usize = 4_096;

/// What a change did to the size of the map.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Growth {
    pub entries: i64,
    pub bytes: i64,
}

/// An answer to remember.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewAnswer {
    pub epoch: u64,
    pub server: u32,
    pub now_ms: u64,
}

/// The epoch and server that an answer replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replaced {
    pub epoch: u64,
    pub server: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Part {
    table: HashTable<Entry>,
    arena: Vec<u8>,
    /// Arena bytes of entries that are gone.
    garbage: usize,
}

impl Part {
    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn bytes(&self) -> usize {
        self.table.allocation_size() + self.arena.capacity()
    }

    pub fn find(&self, hash: u64, key: &[u8]) -> Option<&Entry> {
        self.table.find(hash, |entry| entry.key(&self.arena) == key)
    }

    pub fn find_mut(&mut self, hash: u64, key: &[u8]) -> Option<&mut Entry> {
        let arena = &self.arena;
        self.table.find_mut(hash, |entry| entry.key(arena) == key)
    }

    /// For the end of an attempt, which keeps no key. Two shards of one epoch with the same 64-bit
    /// seeded hash would be taken for each other: the count would be late by one, never early for
    /// both.
    pub fn find_epoch(&self, hash: u64, epoch: u64) -> Option<&Entry> {
        self.table.find(hash, |entry| entry.epoch == epoch)
    }

    /// Applies an answer unless a newer epoch is known (I9). `Ok(Some)` when it replaced another
    /// epoch.
    pub fn answer(
        &mut self,
        hash: u64,
        key: &[u8],
        new: NewAnswer,
        rehash: impl Fn(&[u8]) -> u64,
    ) -> Result<Option<Replaced>, ArenaFull> {
        let NewAnswer {
            epoch,
            server,
            now_ms,
        } = new;
        if let Some(entry) = self.find_mut(hash, key) {
            if entry.epoch > epoch {
                return Ok(None);
            }
            let replaced = Replaced {
                epoch: entry.epoch,
                server: entry.server,
            };
            entry.answer(epoch, server, now_ms);
            return Ok((replaced.epoch != epoch).then_some(replaced));
        }
        let offset = u32::try_from(self.arena.len()).map_err(|_| ArenaFull)?;
        if self.arena.len() + key.len() > self.arena.capacity() {
            // A little at a time: doubling would break the memory budget (B3).
            self.arena
                .reserve_exact((self.arena.len() / 32).max(512).max(key.len()));
        }
        self.arena.extend_from_slice(key);
        let arena = &self.arena;
        let entry = Entry::new(key.len(), offset, epoch, server, now_ms);
        self.table
            .insert_unique(hash, entry, |entry| rehash(entry.key(arena)));
        Ok(None)
    }

    pub fn remove(&mut self, hash: u64, key: &[u8]) -> bool {
        let arena = &self.arena;
        let Ok(found) = self.table.find_entry(hash, |entry| entry.key(arena) == key) else {
            return false;
        };
        let (entry, _) = found.remove();
        self.garbage += entry.key_length();
        self.compact();
        true
    }

    /// Keeps what `keep` says, and whatever has attempts in flight.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut Entry, &[u8]) -> bool) -> usize {
        let before = self.table.len();
        let (arena, garbage) = (&self.arena, &mut self.garbage);
        self.table.retain(|entry| {
            let key = entry.key(arena);
            let keep = keep(entry, key) || entry.in_flight() > 0;
            if !keep {
                *garbage += entry.key_length();
            }
            keep
        });
        self.compact();
        before - self.table.len()
    }

    /// Forgets about an eighth: those that were not used again, or else any, and then all have to
    /// prove their use anew.
    pub fn shed(&mut self) -> usize {
        let mut want = self.len() / 8 + 1;
        let mut drop_if = |part: &mut Part, is_victim: fn(&mut Entry) -> bool| {
            part.retain(|entry, _| {
                let drop =
                    is_victim(entry) && want > 0 && !entry.is_moving() && entry.in_flight() == 0;
                want -= usize::from(drop);
                !drop
            })
        };
        let cold = drop_if(self, |entry| !entry.is_used());
        if cold > 0 {
            return cold;
        }
        drop_if(self, |entry| {
            entry.take_used();
            true
        })
    }

    /// Gives memory back after many entries went.
    pub fn shrink(&mut self, rehash: impl Fn(&[u8]) -> u64) {
        if self.table.capacity() > 64 && self.table.len() < self.table.capacity() / 4 {
            let arena = &self.arena;
            self.table
                .shrink_to(self.table.len() * 2, |entry| rehash(entry.key(arena)));
        }
    }

    fn compact(&mut self) {
        if self.table.is_empty() {
            self.garbage = 0;
            self.arena = Vec::new();
            return;
        }
        if self.garbage < COMPACT_BYTES_MIN || self.garbage < self.arena.len() / 4 {
            return;
        }
        let mut arena = Vec::with_capacity(self.arena.len() - self.garbage);
        for entry in &mut self.table {
            let start = arena.len();
            arena.extend_from_slice(entry.key(&self.arena));
            entry.offset = u32::try_from(start).unwrap_or(u32::MAX);
        }
        self.arena = arena;
        self.garbage = 0;
    }
}

/// The keys of one part would exceed 4 GiB.
#[derive(Debug)]
pub(crate) struct ArenaFull;
