//! The name of a shard.

use std::fmt;
use std::sync::Arc;

/// A service, by its number in this process, and a key.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Shard {
    pub service: u32,
    pub key: Arc<[u8]>,
}

impl Shard {
    pub fn new(service: u32, key: &[u8]) -> Shard {
        Shard {
            service,
            key: key.into(),
        }
    }

    /// Keys are UTF-8 by contract; anything else cannot be asked for.
    pub fn key_text(&self) -> Option<String> {
        std::str::from_utf8(&self.key).ok().map(str::to_owned)
    }
}

impl fmt::Debug for Shard {
    /// Keys may be personal data (C7): only their length is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "shard of service {} with a key of {} bytes",
            self.service,
            self.key.len()
        )
    }
}
