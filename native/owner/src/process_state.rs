//! What workers and the feed thread share, beside the services.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::back_off::BackOff;
use crate::config::Limits;
use crate::counters::Counters;
use crate::hosts::Hosts;
use crate::parking::Parking;
use crate::shard_map::MapTotals;
use crate::signal::Signal;
use crate::streams::Streams;

pub(crate) struct Shared {
    pub limits: Limits,
    pub signal: Arc<Signal>,
    pub totals: MapTotals,
    pub streams: Streams,
    pub parking: Mutex<Parking>,
    pub back_off: Mutex<BackOff>,
    pub hosts: Mutex<Hosts>,
    pub counters: Counters,
    /// Somebody waits for streams to end: closing one is worth a word to the feed thread.
    pub quiet_wanted: AtomicBool,
    /// A complete snapshot was applied once.
    synced: AtomicBool,
    /// The coordinator has been away for so long that new keys are refused at once.
    silent: AtomicBool,
}

impl Shared {
    pub fn new(limits: Limits, workers: u32, signal: Arc<Signal>) -> Shared {
        Shared {
            limits,
            signal,
            totals: MapTotals::default(),
            streams: Streams::default(),
            parking: Mutex::new(Parking::new(&limits)),
            back_off: Mutex::new(BackOff::new(limits.back_off)),
            hosts: Mutex::new(Hosts::new(workers)),
            counters: Counters::default(),
            quiet_wanted: AtomicBool::new(false),
            synced: AtomicBool::new(false),
            silent: AtomicBool::new(false),
        }
    }

    pub fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    pub fn set_synced(&self) {
        self.synced.store(true, Ordering::Release);
    }

    pub fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    pub fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::Relaxed);
    }
}
