//! The clock of all leases.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds of a clock that also runs in suspend (S6). Read it in the same turn as the act that
/// relies on it.
pub(crate) fn now_ms() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1_000 + nanoseconds / 1_000_000
}
