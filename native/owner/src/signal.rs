//! From the workers to the feed thread: a bounded queue and a wake-up, so that nobody waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::shard::Shard;
use crate::waker::StreamId;

/// Commands waiting for the feed thread.
const QUEUE_MAX: usize = 131_072;

/// What a worker wants of the feed thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// A stream parks for a shard that nobody was waiting for.
    Ask(Shard),
    /// Ask again, at or above this revision (R1).
    AskAbove(Shard, u64),
    /// In use and getting old (A5).
    Refresh(Shard),
    Mint {
        shard: Shard,
        incarnation: u64,
        stream: StreamId,
        deadline: u64,
    },
    /// The hosts of the service changed at some worker (A4).
    Hosts(u32),
}

pub(crate) struct Signal {
    queue: Mutex<VecDeque<Command>>,
    quiet: AtomicBool,
    stop: AtomicBool,
    /// The thread was woken and has not looked yet.
    rung: AtomicBool,
    bell: Box<dyn Fn() + Send + Sync>,
}

/// What the feed thread finds when it looks.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub commands: VecDeque<Command>,
    pub check_quiet: bool,
    pub stop: bool,
}

impl Signal {
    /// `bell` makes the feed thread call `take`; it must not block.
    pub fn new(bell: Box<dyn Fn() + Send + Sync>) -> Signal {
        Signal {
            queue: Mutex::default(),
            quiet: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            rung: AtomicBool::new(false),
            bell,
        }
    }

    /// `false` when the queue is full; the command is dropped.
    pub fn send(&self, command: Command) -> bool {
        {
            let mut queue = self.queue.lock();
            if queue.len() >= QUEUE_MAX {
                return false;
            }
            queue.push_back(command);
        }
        self.ring();
        true
    }

    /// A count fell to zero that somebody may wait for.
    pub fn check_quiet(&self) {
        self.quiet.store(true, Ordering::SeqCst);
        self.ring();
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.ring();
    }

    pub fn take(&self) -> Taken {
        // First this, then the rest: what is sent after it rings again.
        self.rung.store(false, Ordering::SeqCst);
        Taken {
            commands: std::mem::take(&mut *self.queue.lock()),
            check_quiet: self.quiet.swap(false, Ordering::SeqCst),
            stop: self.stop.load(Ordering::SeqCst),
        }
    }

    fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            (self.bell)();
        }
    }
}
