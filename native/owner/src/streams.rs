//! The registry of open streams: who must hear that a shard moved, a server ended or a lease is
//! over.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::answer::StreamKind;
use crate::shard::Shard;
use crate::waker::StreamId;

/// A worker has eight of its own, so that a look at all its streams never holds all of them up.
const STRIPES: usize = WORKERS * 8;
const WORKERS: usize = 16;
const NONE: u32 = u32::MAX;

/// What a stream was opened on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenStream {
    pub stream: StreamId,
    pub service: u32,
    pub epoch: u64,
    pub incarnation: u64,
    pub kind: StreamKind,
}

#[derive(Debug)]
struct Node {
    open: OpenStream,
    shard: Option<Shard>,
    next: u32,
    previous: u32,
}

/// Streams by id; those of one shard are a list, so that a popular key costs no more than others.
#[derive(Debug, Default)]
struct Stripe {
    nodes: Vec<Option<Node>>,
    free: Vec<u32>,
    by_stream: HashMap<StreamId, u32, foldhash::fast::RandomState>,
    heads: HashMap<Shard, u32, foldhash::fast::RandomState>,
}

/// Of a cache line each.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Lane(Mutex<Stripe>);

#[derive(Debug)]
pub(crate) struct Streams {
    stripes: [Lane; STRIPES],
    searches: AtomicU64,
}

impl Default for Streams {
    fn default() -> Self {
        Streams {
            stripes: std::array::from_fn(|_| Lane::default()),
            searches: AtomicU64::new(0),
        }
    }
}

impl Streams {
    /// Registers or replaces. `true` if it is the stripe's first of this shard.
    pub fn open(&self, open: OpenStream, shard: Option<Shard>) -> bool {
        let mut stripe = self.stripe(open.stream).lock();
        stripe.close(open.stream);
        stripe.open(open, shard)
    }

    pub fn close(&self, stream: StreamId) -> bool {
        self.stripe(stream).lock().close(stream)
    }

    pub fn len(&self) -> usize {
        self.stripes
            .iter()
            .map(|stripe| stripe.0.lock().by_stream.len())
            .sum()
    }

    /// How often streams were looked for. Whoever reads the same number before a look at the map and after
    /// opening a stream on it knows that no search missed the stream: what a search is for is in the map
    /// before it begins.
    pub fn searches(&self) -> u64 {
        self.searches.load(Ordering::SeqCst)
    }

    pub fn of_shard(&self, shard: &Shard) -> Vec<OpenStream> {
        self.searches.fetch_add(1, Ordering::SeqCst);
        self.stripes
            .iter()
            .flat_map(|stripe| stripe.0.lock().of_shard(shard))
            .collect()
    }

    /// All that `wanted` says; looks at every stream.
    pub fn all(&self, wanted: impl Fn(&OpenStream) -> bool) -> Vec<OpenStream> {
        self.searches.fetch_add(1, Ordering::SeqCst);
        let mut found = Vec::new();
        for stripe in &self.stripes {
            let stripe = stripe.0.lock();
            found.extend(
                stripe
                    .nodes
                    .iter()
                    .flatten()
                    .map(|node| &node.open)
                    .filter(|open| wanted(open))
                    .cloned(),
            );
        }
        found
    }

    /// Every shard with an open stream; one may come twice.
    pub fn shards(&self) -> Vec<Shard> {
        self.stripes
            .iter()
            .flat_map(|stripe| stripe.0.lock().heads.keys().cloned().collect::<Vec<_>>())
            .collect()
    }

    fn stripe(&self, stream: StreamId) -> &Mutex<Stripe> {
        // The data plane names the worker in the lowest bits and counts from the seventh on.
        let (worker, turn) = (stream.0 % WORKERS as u64, stream.0 >> 6);
        let stripe = usize::try_from(worker * 8 + turn % 8).unwrap_or(0);
        &self.stripes[stripe].0
    }
}

impl Stripe {
    fn open(&mut self, open: OpenStream, shard: Option<Shard>) -> bool {
        let stream = open.stream;
        let next = shard
            .as_ref()
            .and_then(|shard| self.heads.get(shard).copied())
            .unwrap_or(NONE);
        let first = shard.is_some() && next == NONE;
        let node = Node {
            open,
            shard: shard.clone(),
            next,
            previous: NONE,
        };
        let index = if let Some(index) = self.free.pop() {
            self.nodes[index as usize] = Some(node);
            index
        } else {
            self.nodes.push(Some(node));
            u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
        };
        if let Some(next) = self.node(next) {
            next.previous = index;
        }
        if let Some(shard) = shard {
            self.heads.insert(shard, index);
        }
        self.by_stream.insert(stream, index);
        first
    }

    fn close(&mut self, stream: StreamId) -> bool {
        let Some(index) = self.by_stream.remove(&stream) else {
            return false;
        };
        let Some(node) = self.nodes[index as usize].take() else {
            return false;
        };
        self.free.push(index);
        if let Some(next) = self.node(node.next) {
            next.previous = node.previous;
        }
        if let Some(previous) = self.node(node.previous) {
            previous.next = node.next;
        } else if let Some(shard) = node.shard {
            if node.next == NONE {
                self.heads.remove(&shard);
            } else {
                self.heads.insert(shard, node.next);
            }
        }
        true
    }

    fn of_shard(&self, shard: &Shard) -> Vec<OpenStream> {
        let mut found = Vec::new();
        let mut index = self.heads.get(shard).copied().unwrap_or(NONE);
        while let Some(Some(node)) = self.nodes.get(index as usize) {
            found.push(node.open.clone());
            index = node.next;
        }
        found
    }

    fn node(&mut self, index: u32) -> Option<&mut Node> {
        self.nodes.get_mut(index as usize).and_then(Option::as_mut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn open(stream: u64, key: u8) -> (OpenStream, Shard) {
        let shard = Shard::new(0, &[key]);
        let kind = StreamKind::Stream;
        (
            OpenStream {
                stream: StreamId(stream),
                service: 0,
                epoch: u64::from(key),
                incarnation: 1,
                kind,
            },
            shard,
        )
    }

    proptest! {
        #[test]
        fn p1_every_open_stream_is_found_by_its_shard(ops in prop::collection::vec((0u64..40, 0u8..6, any::<bool>()), 1..300)) {
            let streams = Streams::default();
            let mut model: HashMap<u64, u8> = HashMap::new();
            for (stream, key, opens) in ops {
                if opens {
                    let (entry, shard) = open(stream, key);
                    streams.open(entry, Some(shard));
                    model.insert(stream, key);
                } else {
                    prop_assert_eq!(streams.close(StreamId(stream)), model.remove(&stream).is_some());
                }
            }
            prop_assert_eq!(streams.len(), model.len());
            for key in 0..6 {
                let mut found: Vec<u64> = streams.of_shard(&Shard::new(0, &[key])).iter().map(|open| open.stream.0).collect();
                let mut wanted: Vec<u64> = model.iter().filter(|(_, at)| **at == key).map(|(stream, _)| *stream).collect();
                found.sort_unstable();
                wanted.sort_unstable();
                prop_assert_eq!(found, wanted);
            }
        }
    }
}
