//! What all workers of the process share, from the start of the bootstrap extension on.

use crate::delay::Delay;
use crate::metrics::{Metrics, ServiceMetrics};
use crate::wakers::Wakers;
use belay_owner::{Proxy, Service};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The process.
pub struct Process {
    pub proxy: Proxy,
    pub wakers: Arc<Wakers>,
    pub delay: Delay,
    pub metrics: Arc<Metrics>,
}

static PROCESS: OnceLock<Process> = OnceLock::new();

/// `Err`: there is one already; the configuration names the bootstrap extension twice.
pub fn set(process: Process) -> Result<(), Process> {
    PROCESS.set(process)
}

/// `None`: the bootstrap extension is missing, or this is `--mode validate`.
#[must_use]
pub fn get() -> Option<&'static Process> {
    PROCESS.get()
}

/// Milliseconds on a clock of this process.
#[must_use]
pub fn now_ms() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A service of the configuration, found in the process when it is first used.
pub struct Known {
    pub name: String,
    found: OnceLock<(Service, Arc<ServiceMetrics>)>,
}

impl Known {
    #[must_use]
    pub fn new(name: String) -> Self {
        Self {
            name,
            found: OnceLock::new(),
        }
    }

    /// `None`: as `get`.
    #[must_use]
    pub fn service(&self) -> Option<&Service> {
        Some(&self.find()?.0)
    }

    /// `None`: as `get`.
    #[must_use]
    pub fn metrics(&self) -> Option<&ServiceMetrics> {
        Some(&self.find()?.1)
    }

    fn find(&self) -> Option<&(Service, Arc<ServiceMetrics>)> {
        if let Some(found) = self.found.get() {
            return Some(found);
        }
        let process = get()?;
        let found = (
            process.proxy.service(&self.name),
            process.metrics.service(&self.name),
        );
        Some(self.found.get_or_init(|| found))
    }
}
