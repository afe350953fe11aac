//! The process-wide handle that the data plane talks to.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use mio::Poll;
use parking_lot::Mutex;

use crate::answer::Refusal;
use crate::clock::now_ms;
use crate::config::ProxyConfig;
use crate::counters::read;
use crate::link::{BELL, Link};
use crate::machine::Machine;
use crate::process_state::Shared;
use crate::service::Service;
use crate::services::Services;
use crate::signal::Signal;
use crate::stats::Stats;
use crate::waker::{StreamId, Waker};

struct Inner {
    shared: Arc<Shared>,
    services: Arc<Services>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The proxy's half of the ownership protocol. Cheap to clone; all clones are the same proxy.
#[derive(Clone)]
pub struct Proxy {
    inner: Arc<Inner>,
}

impl Proxy {
    /// Starts the feed thread. Fails when the thread, its poller or 16 random bytes cannot be had.
    pub fn start(config: ProxyConfig, waker: Arc<dyn Waker>) -> io::Result<Proxy> {
        let poll = Poll::new()?;
        let bell = mio::Waker::new(poll.registry(), BELL)?;
        // A bell that cannot ring delays until the next tick: nothing that a worker could do about
        // it.
        let signal = Arc::new(Signal::new(Box::new(move || drop(bell.wake()))));
        let shared = Arc::new(Shared::new(config.limits, config.workers, signal));
        let services = Arc::new(Services::new(&shared));
        let process_id = random_id()?;
        let coordinator = config.coordinator;
        let machine = Machine::new(
            config,
            process_id,
            Arc::clone(&shared),
            Arc::clone(&services),
            now_ms(),
        );
        let seed = u64::from_ne_bytes(*process_id.first_chunk().unwrap_or(&[1; 8]));
        let link = Link::new(poll, machine, Arc::clone(&shared), waker, coordinator, seed);
        let thread = std::thread::Builder::new()
            .name("belay-feed".to_owned())
            .spawn(move || link.run())?;
        Ok(Proxy {
            inner: Arc::new(Inner {
                shared,
                services,
                thread: Mutex::new(Some(thread)),
            }),
        })
    }

    /// Says Goodbye if no stream is open (P7), ends the thread and joins it. Idempotent. Not from
    /// within a `Waker`.
    pub fn stop(&self) {
        self.inner.shared.signal.stop();
        let thread = self.inner.thread.lock().take();
        if let Some(thread) = thread {
            // A panic of the thread was reported by the panic hook.
            let _ = thread.join();
        }
    }

    /// The service of that name; made when new, so only call it with names from configuration.
    #[must_use]
    pub fn service(&self, name: &str) -> Service {
        Service::new(
            self.inner.services.named(name),
            Arc::clone(&self.inner.shared),
        )
    }

    /// A stream left its parking (client gone, time over). No event for it begins after this
    /// returned, except one already on its way.
    pub fn unpark(&self, stream: StreamId) {
        self.inner.shared.parking.lock().leave(stream);
    }

    /// The stream has ended; forgets what `Service::open` registered. Harmless for an unknown one.
    pub fn close(&self, stream: StreamId) {
        let shared = &self.inner.shared;
        if shared.streams.close(stream) && shared.quiet_wanted.load(Ordering::SeqCst) {
            shared.signal.check_quiet();
        }
    }

    /// A reading for metrics.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let Inner {
            shared, services, ..
        } = &*self.inner;
        let (counters, now) = (&shared.counters, now_ms());
        let defined: Vec<_> = services
            .all()
            .iter()
            .filter(|service| service.is_defined())
            .cloned()
            .collect();
        let leases = defined
            .iter()
            .map(|service| service.lease_until().saturating_sub(now));
        let heard = read(&counters.heard);
        Stats {
            map_entries: shared.totals.entries(),
            map_bytes: shared.totals.bytes(),
            parked: shared.parking.lock().len() as u64,
            open_streams: shared.streams.len() as u64,
            connected: counters.connected.load(Ordering::Relaxed),
            synced: shared.is_synced(),
            revision: read(&counters.revision),
            term: read(&counters.term),
            feed_age_ms: if heard == 0 {
                u64::MAX
            } else {
                now.saturating_sub(heard)
            },
            lease_left_ms: leases.min().unwrap_or(u64::MAX),
            services: defined.len() as u64,
            servers: defined
                .iter()
                .map(|service| service.servers.read().len() as u64)
                .sum(),
            reconnects: read(&counters.reconnects),
            resolves: read(&counters.resolves),
            resolve_ms: std::array::from_fn(|bucket| read(&counters.resolve_ms[bucket])),
            resolve_ms_sum: read(&counters.resolve_ms_sum),
            refusals: std::array::from_fn::<u64, { Refusal::COUNT }, _>(|kind| {
                read(&counters.refusals[kind])
            }),
            placed: read(&counters.placed),
            moves_seen: read(&counters.moves_seen),
            evicted: read(&shared.totals.evicted),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The last handle is gone without `stop`: the thread must not outlive what it serves.
        self.shared.signal.stop();
        if let Some(thread) = self.thread.lock().take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

/// P7: 128 random bits.
pub(crate) fn random_id() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}
