//! Pauses: wakes a stream after some time. Envoy gives filters no timers.

use crate::wakers::{Event, Wakers};
use belay_owner::StreamId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Streams that pause at the same time in one process.
const PAUSES_MAX: usize = 65_536;

#[derive(Default)]
struct Queue {
    pauses: BinaryHeap<Reverse<(Instant, u64)>>,
    stopped: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// One thread that ends all pauses.
pub struct Delay {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Delay {
    /// # Errors
    /// The thread cannot be made.
    pub fn start(wakers: Arc<Wakers>) -> std::io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let thread = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("belay-delay".into())
                .spawn(move || run(&shared, &wakers))?
        };
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Sends `Event::Pause` after `pause`. `false`: too many pauses, nothing will come.
    #[must_use]
    pub fn pause(&self, stream: StreamId, pause: Duration) -> bool {
        let mut queue = self
            .shared
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if queue.stopped || queue.pauses.len() >= PAUSES_MAX {
            return false;
        }
        queue
            .pauses
            .push(Reverse((Instant::now() + pause, stream.0)));
        self.shared.changed.notify_one();
        true
    }

    /// Ends the thread and joins it.
    pub fn stop(&self) {
        self.shared
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .stopped = true;
        self.shared.changed.notify_one();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            crate::entry::panicked("delay thread");
        }
    }
}

fn run(shared: &Shared, wakers: &Wakers) {
    let mut queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
    while !queue.stopped {
        let now = Instant::now();
        match queue.pauses.peek() {
            Some(Reverse((at, stream))) if *at <= now => {
                let stream = StreamId(*stream);
                queue.pauses.pop();
                drop(queue);
                wakers.send(stream, Event::Pause);
                queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
            }
            Some(Reverse((at, _))) => {
                let left = *at - now;
                queue = shared
                    .changed
                    .wait_timeout(queue, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
            None => {
                queue = shared
                    .changed
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}
