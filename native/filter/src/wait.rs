//! The memory of a request between its attempts.
//!
//! Envoy runs a fresh upstream filter for every attempt, and nothing but the request's headers lives
//! from one to the next. So after a failed attempt this note stands in `x-belay-wait`; it never
//! exists on the way of a request that goes right at the first attempt.

use core::fmt;

/// R2: tries that may be refused, each by a newly learned owner, before the client gets 503.
pub const REFUSALS_MAX: u32 = 3;

/// Where the request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// An attempt is with a server. Seen again by the LB policy: it never got there (R3).
    Sent,
    /// The same for the one more try after a refusal that knew less than we do (R1).
    SentAgain,
    /// Refused: pick again.
    Refused,
    /// Refused by a server that knows less than we do: wait a little, then send once more (R1).
    Behind,
    /// In the waiting room, which answers «try again» or the end.
    Room(Cause),
}

/// Why a request goes to the waiting room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No usable owner now.
    Owner,
    /// The owner is not among the hosts (yet).
    Host,
    /// The connection failed, nothing was sent (R3).
    Connect,
    /// As `State::Behind`.
    Behind,
}

/// The note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub state: State,
    /// On the process's clock, in ms.
    pub deadline_ms: u64,
    pub refusals: u32,
    /// Visits of the waiting room.
    pub visits: u32,
    pub service: String,
}

impl State {
    fn letter(self) -> char {
        match self {
            Self::Sent => 's',
            Self::SentAgain => 'a',
            Self::Refused => 'r',
            Self::Behind => 'b',
            Self::Room(Cause::Owner) => 'O',
            Self::Room(Cause::Host) => 'H',
            Self::Room(Cause::Connect) => 'C',
            Self::Room(Cause::Behind) => 'B',
        }
    }

    fn from_letter(letter: &str) -> Option<Self> {
        Some(match letter {
            "s" => Self::Sent,
            "a" => Self::SentAgain,
            "r" => Self::Refused,
            "b" => Self::Behind,
            "O" => Self::Room(Cause::Owner),
            "H" => Self::Room(Cause::Host),
            "C" => Self::Room(Cause::Connect),
            "B" => Self::Room(Cause::Behind),
            _ => return None,
        })
    }

    /// What the LB policy does with a request in this state: `Some`, it has to wait first.
    #[must_use]
    pub fn must_wait(self) -> Option<Cause> {
        match self {
            Self::Sent | Self::SentAgain => Some(Cause::Connect),
            Self::Behind => Some(Cause::Behind),
            Self::Refused | Self::Room(_) => None,
        }
    }

    /// The state once an attempt leaves for a server.
    #[must_use]
    pub fn sent(self) -> Self {
        match self {
            Self::Behind | Self::Room(Cause::Behind) => Self::SentAgain,
            _ => Self::Sent,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            state,
            deadline_ms,
            refusals,
            visits,
            service,
        } = self;
        write!(
            out,
            "{};{deadline_ms};{refusals};{visits};{service}",
            state.letter()
        )
    }
}

impl Wait {
    /// `None`: not a note of ours.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut parts = core::str::from_utf8(value).ok()?.splitn(5, ';');
        Some(Self {
            state: State::from_letter(parts.next()?)?,
            deadline_ms: parts.next()?.parse().ok()?,
            refusals: parts.next()?.parse().ok()?,
            visits: parts.next()?.parse().ok()?,
            service: parts.next()?.to_owned(),
        })
    }
}

/// A server's refusal: `x-belay-refused: <incarnation>; as-of=<n>; reason=<word>` (G4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusalHeader {
    pub incarnation: u64,
    pub as_of: u64,
}

impl RefusalHeader {
    /// `None`: malformed; the caller drops it.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut parts = core::str::from_utf8(value).ok()?.split(';').map(str::trim);
        let incarnation = parts.next()?.parse().ok()?;
        let as_of = parts
            .find_map(|part| part.strip_prefix("as-of="))?
            .parse()
            .ok()?;
        Some(Self { incarnation, as_of })
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, RefusalHeader, State, Wait};

    #[test]
    fn a_note_survives_its_header() {
        for letter in ["s", "a", "r", "b", "O", "H", "C", "B"] {
            let state = State::from_letter(letter).expect(letter);
            let wait = Wait {
                state,
                deadline_ms: 12_345,
                refusals: 2,
                visits: 7,
                service: "a;b".into(),
            };
            assert_eq!(Wait::parse(wait.to_string().as_bytes()), Some(wait));
        }
        assert_eq!(Wait::parse(b"x;1;2;3;s"), None);
        assert_eq!(Wait::parse(b"s;1;2"), None);
    }

    #[test]
    fn r3_an_attempt_that_is_seen_again_without_an_answer_waits_and_asks() {
        assert_eq!(State::Sent.must_wait(), Some(Cause::Connect));
        assert_eq!(State::Refused.must_wait(), None);
    }

    #[test]
    fn r1_one_more_try_after_a_refusal_that_knew_less() {
        assert_eq!(State::Behind.must_wait(), Some(Cause::Behind));
        assert_eq!(State::Room(Cause::Behind).must_wait(), None);
        assert_eq!(State::Room(Cause::Behind).sent(), State::SentAgain);
        assert_eq!(State::Room(Cause::Owner).sent(), State::Sent);
    }

    #[test]
    fn g4_refusals_are_parsed_or_dropped() {
        let parsed = RefusalHeader::parse(b"42; as-of=77; reason=moved");
        assert_eq!(
            parsed,
            Some(RefusalHeader {
                incarnation: 42,
                as_of: 77
            })
        );
        for broken in [&b"moved"[..], b"42", b"42; as-of=x; reason=moved", b"\xff"] {
            assert_eq!(RefusalHeader::parse(broken), None);
        }
    }
}
