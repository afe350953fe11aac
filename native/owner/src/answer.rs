//! What the owner map answers.

use std::sync::Arc;

use crate::in_flight::InFlight;

/// One running incarnation of a server, as the feed describes it. Never changes; a change makes a
/// new one.
#[derive(Debug, PartialEq, Eq)]
pub struct Server {
    pub id: Box<str>,
    pub incarnation: u64,
    /// `ip:port` as Envoy's endpoint has it.
    pub address: Box<str>,
    pub zone: Box<str>,
}

/// Where to send one attempt.
#[derive(Debug)]
pub struct Pick {
    pub server: Arc<Server>,
    /// Epoch of the shard; 0 when the server was picked without a key.
    pub epoch: u64,
    /// Unguarded services only: keep it until the attempt's upstream stream has ended, then drop it
    /// (M4 quiet).
    pub in_flight: Option<InFlight>,
    /// Searches for open streams before the look at the map (`Streams::searches`).
    pub(crate) searches: u64,
}

/// Why a request gets no owner; `code` is the `x-belay-reason` of `proto/testdata/reasons.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Refusal {
    NoServer,
    Full,
    UnknownKey,
    ServiceUnknown,
    LeaseOver,
    NoSnapshot,
    CoordinatorSilent,
    Moving,
    ParkFull,
    ServerGone,
    OutcomeUnknown,
}

impl Refusal {
    /// How many kinds there are; `self as usize` is below it.
    pub const COUNT: usize = 11;

    /// The closed code that clients see in `x-belay-reason`.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Refusal::NoServer => "no-server",
            Refusal::Full => "full",
            Refusal::UnknownKey => "unknown-key",
            Refusal::ServiceUnknown => "service-unknown",
            Refusal::LeaseOver => "lease-over",
            Refusal::NoSnapshot => "no-snapshot",
            Refusal::CoordinatorSilent => "coordinator-silent",
            Refusal::Moving => "moving",
            Refusal::ParkFull => "park-full",
            Refusal::ServerGone => "server-gone",
            Refusal::OutcomeUnknown => "outcome-unknown",
        }
    }
}

/// Answer to a look-up of a key, valid at the moment of the call only: look again at every attempt.
#[derive(Debug)]
pub enum Answer {
    Owner(Pick),
    /// Not known here: park the stream.
    Miss,
    /// The shard is leaving its owner: park the stream (M2).
    Moving,
    /// Answer the client now; `retry_after_ms` 0 means no Retry-After.
    Refused {
        reason: Refusal,
        retry_after_ms: u32,
    },
}

/// What is known of a server id (N1: the id of a gone server never means another server).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAnswer {
    Active(Arc<Server>),
    /// Serves what it has, also by its id; gets no keyless requests.
    Draining(Arc<Server>),
    /// Registered once, its incarnation has ended.
    Gone,
    /// Never registered, as far as the snapshot tells.
    Unknown,
    /// Nothing may be believed now: no snapshot, lease over, or no such service.
    Refused(Refusal),
}

/// Answer to `park`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parked {
    /// The stream is held; exactly one `Answer` or `Deadline` event will come, unless it is
    /// unparked first.
    Waiting,
    /// The map knows more by now: look again, nothing is held.
    LookAgain,
    /// A limit is reached: 503 `park-full`.
    Full,
}

/// A server's 421 with `x-belay-refused`, for the attempt that was addressed to `incarnation` (G4).
#[derive(Debug, Clone, Copy)]
pub struct ServerRefusal {
    pub incarnation: u64,
    pub as_of: u64,
    /// This attempt was already the one more try of `AfterRefusal::WaitAndResend`.
    pub resent: bool,
}

/// What to do after a refusal (R1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRefusal {
    /// The map names another owner by now: send again at once.
    SendAgain,
    /// The answer was forgotten and is being asked for: look again, which says `Miss`, and park.
    Park,
    /// The server knows less than we do: wait a little (50 ms), send once more, then come back with
    /// `resent`.
    WaitAndResend,
}

/// Answer to `open`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    Registered,
    /// What the stream was picked on is no longer true: close a socket with 4421, reset anything
    /// else.
    Moved,
}

/// What a stream is, for the way it ends when its shard moves (M2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    /// Closed by us at a frame boundary (`CloseMoved`).
    WebSocket,
    /// Runs to the drain deadline.
    Stream,
}
