//! How the owner map reaches the data plane.

use crate::answer::Refusal;

/// Names one stream of the data plane; unique in the process while the stream lives. Ids of one worker
/// should have the same lowest four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u64);

/// The outcome of a mint claim (A7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MintResult {
    /// The key is this server's, at this epoch.
    Owned {
        epoch: u64,
    },
    /// Another server owns it: 502 `mint-conflict`.
    Conflict,
    /// The server's incarnation has ended: 503 `mint-unconfirmed`.
    ServerGone,
    ServiceUnknown,
    /// Not answered by the deadline: 503 `mint-unconfirmed`.
    TimedOut,
}

/// Something a stream waits for has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// Parked: look again.
    Answer,
    /// Parked until the deadline; says why there was no answer (`Moving` or `CoordinatorSilent`).
    Deadline(Refusal),
    /// Open WebSocket: its shard moved or its server ended; close it with 4421 after the message in
    /// hand.
    CloseMoved,
    /// Open stream: reset it now (P1, M2), never end it cleanly.
    Reset(Refusal),
    /// The mint claim is decided.
    Minted(MintResult),
}

/// How important a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// The data plane's ear. Called from the feed thread, never under a lock of ours; must not block.
pub trait Waker: Send + Sync {
    /// The stream may be gone: ignore what is not known.
    fn wake(&self, stream: StreamId, event: StreamEvent);
    /// Once: the first complete snapshot is there and may be believed, or `max_wait_ms` is over.
    fn ready(&self);
    fn log(&self, level: Level, message: &str);
}
