//! Wakes held and open streams from the feed thread, and the main thread when the feed is ready.

use crate::abi::{self, MainScheduler, Scheduler, Stream};
use crate::answer::reason_of;
use belay_keys::Reason;
use belay_owner::{Level, MintResult, Refusal, StreamEvent, StreamId, Waker};
use hashbrown::HashMap;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Locks that workers and the feed thread share are split, one for each worker while there are not more:
/// a worker then finds its own lines in its own cache.
const STRIPES: usize = 64;
/// From one id of a worker to its next.
const STRIDE: u64 = STRIPES as u64;

thread_local! {
    /// The next id of this worker: its stripe below, a count above.
    static NEXT: Cell<u64> = Cell::new(next_stripe());
}

fn next_stripe() -> u64 {
    static WORKERS: AtomicU64 = AtomicU64::new(0);
    let worker = WORKERS.fetch_add(1, Ordering::Relaxed);
    // More workers than stripes share them, from counts that do not meet.
    worker % STRIDE + (worker / STRIDE) * (STRIDE << 48) + STRIDE
}

/// What a stream hears in its `scheduled` hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Parked: look again.
    Answer,
    Deadline(Reason),
    CloseMoved,
    Reset(Reason),
    Minted(Claim),
    /// A pause that was asked for is over.
    Pause,
    /// The last bytes were sent from a body hook: end the stream now.
    Finish,
}

/// How a claim of a minted key ended (A7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    Owned,
    Conflict,
    Unconfirmed,
}

impl Event {
    /// Envoy carries one number: the kind below, the argument above.
    #[must_use]
    pub fn encode(self) -> u64 {
        let with = |kind: u64, argument: usize| kind | (argument as u64) << 8;
        match self {
            Self::Answer => 1,
            Self::Deadline(reason) => with(2, reason.index()),
            Self::CloseMoved => 3,
            Self::Reset(reason) => with(4, reason.index()),
            Self::Minted(Claim::Owned) => with(5, 0),
            Self::Minted(Claim::Conflict) => with(5, 1),
            Self::Minted(Claim::Unconfirmed) => with(5, 2),
            Self::Pause => 6,
            Self::Finish => 7,
        }
    }

    /// `None`: not one of ours.
    #[must_use]
    pub fn decode(event: u64) -> Option<Self> {
        let argument = usize::try_from(event >> 8).ok()?;
        let reason = || Reason::ALL.get(argument).copied();
        Some(match event & 0xff {
            1 => Self::Answer,
            2 => Self::Deadline(reason()?),
            3 => Self::CloseMoved,
            4 => Self::Reset(reason()?),
            5 => Self::Minted(match argument {
                0 => Claim::Owned,
                1 => Claim::Conflict,
                _ => Claim::Unconfirmed,
            }),
            6 => Self::Pause,
            7 => Self::Finish,
            _ => return None,
        })
    }
}

impl From<StreamEvent> for Event {
    fn from(event: StreamEvent) -> Self {
        match event {
            StreamEvent::Answer => Self::Answer,
            StreamEvent::Deadline(refusal) => Self::Deadline(reason_of(refusal)),
            StreamEvent::CloseMoved => Self::CloseMoved,
            StreamEvent::Reset(refusal) => Self::Reset(reset_reason(refusal)),
            StreamEvent::Minted(MintResult::Owned { .. }) => Self::Minted(Claim::Owned),
            StreamEvent::Minted(MintResult::Conflict) => Self::Minted(Claim::Conflict),
            StreamEvent::Minted(_) => Self::Minted(Claim::Unconfirmed),
        }
    }
}

/// A stream that was with a server when ownership went: nobody can say what became of it (G7).
fn reset_reason(refusal: Refusal) -> Reason {
    match refusal {
        Refusal::LeaseOver => Reason::LeaseOver,
        _ => Reason::OutcomeUnknown,
    }
}

/// Of a cache line each.
#[repr(align(128))]
#[derive(Default)]
struct Stripe(Mutex<HashMap<u64, Scheduler>>);

fn stripe_of(id: u64) -> usize {
    usize::try_from(id % STRIDE).unwrap_or(0)
}

/// Every stream that may be woken, by its id.
pub struct Wakers {
    stripes: [Stripe; STRIPES],
    main: Mutex<Option<MainScheduler>>,
}

/// The right of one stream to be woken; ends when dropped.
pub struct Wakeable {
    wakers: Arc<Wakers>,
    pub id: StreamId,
}

impl Drop for Wakeable {
    fn drop(&mut self) {
        // Freed outside the lock.
        let scheduler = self.wakers.lock(self.id.0).remove(&self.id.0);
        drop(scheduler);
    }
}

impl Wakers {
    #[must_use]
    pub fn new(main: MainScheduler) -> Arc<Self> {
        Arc::new(Self {
            stripes: std::array::from_fn(|_| Stripe::default()),
            main: Mutex::new(Some(main)),
        })
    }

    /// Lets a stream be woken under a new id.
    #[must_use]
    pub fn register(self: &Arc<Self>, stream: &mut Stream) -> Wakeable {
        let id = NEXT.with(|next| next.replace(next.get() + STRIDE));
        self.lock(id).insert(id, stream.scheduler());
        Wakeable {
            wakers: Arc::clone(self),
            id: StreamId(id),
        }
    }

    /// Runs the stream's `scheduled` hook on its worker; nothing if the stream is gone.
    pub fn send(&self, stream: StreamId, event: Event) {
        if let Some(scheduler) = self.lock(stream.0).get(&stream.0) {
            scheduler.commit(event.encode());
        }
    }

    /// The main thread ends: nothing is sent to it any more.
    pub fn forget_main(&self) {
        drop(
            self.main
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }

    fn lock(&self, id: u64) -> std::sync::MutexGuard<'_, HashMap<u64, Scheduler>> {
        self.stripes[stripe_of(id)]
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The feed's view of the wakers.
pub struct FeedWaker(pub Arc<Wakers>);

impl Waker for FeedWaker {
    fn wake(&self, stream: StreamId, event: StreamEvent) {
        self.0.send(stream, event.into());
    }

    fn ready(&self) {
        let main = self.0.main.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(main) = &*main {
            main.commit(crate::bootstrap::READY);
        }
    }

    fn log(&self, level: Level, message: &str) {
        let level = match level {
            Level::Debug => abi::Level::Debug,
            Level::Info => abi::Level::Info,
            Level::Warn => abi::Level::Warn,
            Level::Error => abi::Level::Error,
        };
        if abi::log_enabled(level) {
            abi::log(level, &format!("belay: {message}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Claim, Event};
    use belay_keys::Reason;

    #[test]
    fn events_survive_their_number() {
        let mut all = vec![
            Event::Answer,
            Event::CloseMoved,
            Event::Pause,
            Event::Finish,
        ];
        all.extend(Reason::ALL.map(Event::Deadline));
        all.extend(Reason::ALL.map(Event::Reset));
        all.extend([Claim::Owned, Claim::Conflict, Claim::Unconfirmed].map(Event::Minted));
        for event in all {
            assert_eq!(Event::decode(event.encode()), Some(event));
        }
        assert_eq!(Event::decode(0), None);
        assert_eq!(Event::decode(2 | 99 << 8), None);
    }
}
