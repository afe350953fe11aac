//! Counts what is under way to unguarded servers (M4 quiet).

use std::fmt;
use std::sync::Arc;

use crate::servers::Record;
use crate::service_state::ServiceState;

/// Counts one attempt against its shard and its server until dropped; the last one of a moving
/// shard or an ended server lets the feed thread say `Quiet`.
pub struct InFlight {
    pub(crate) service: Arc<ServiceState>,
    pub(crate) record: Arc<Record>,
    /// Hash and epoch of the shard, if picked by key.
    pub(crate) shard: Option<(u64, u64)>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let shard_done = self
            .shard
            .is_some_and(|(hash, epoch)| self.service.map.leave(hash, epoch));
        let server_done = self.record.leave();
        if shard_done || server_done {
            self.service.signal.check_quiet();
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight")
            .field("server", &self.record.server.id)
            .finish_non_exhaustive()
    }
}
