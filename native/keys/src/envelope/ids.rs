//! The ids of a candidate, and the key that they make.

use smallvec::SmallVec;

use super::{EnvelopeUse, Part, Progress};
use crate::key::{KEY_BYTES_MAX, Key};
use crate::reason::Reason;

/// The ids read so far, by [`Part`]. Only what can be part of a key is kept.
#[derive(Debug, Default)]
pub(super) struct Ids([Id; 4]);

#[derive(Debug, Default)]
struct Id {
    bytes: SmallVec<[u8; 24]>,
    too_long: bool,
}

impl Ids {
    /// An id of that many bytes comes; it replaces one that came before, as protobuf has it.
    /// `false`: do not copy it.
    pub(super) fn begin(&mut self, part: Part, length: u64) -> bool {
        let too_long = length > KEY_BYTES_MAX as u64;
        self.0[part as usize] = Id {
            bytes: SmallVec::new(),
            too_long,
        };
        !too_long
    }

    pub(super) fn extend(&mut self, part: Part, bytes: &[u8]) {
        self.0[part as usize].bytes.extend_from_slice(bytes);
    }

    /// The key of a complete envelope.
    pub(super) fn key(&self, uses: &EnvelopeUse) -> Progress {
        let mut joined: SmallVec<[u8; 64]> = SmallVec::new();
        for (index, part) in uses.0.iter().enumerate() {
            let id = &self.0[*part as usize];
            if id.too_long {
                return Progress::Broken(Reason::BadKey);
            }
            if id.bytes.is_empty() {
                return Progress::NotFound;
            }
            // Joined ids must not be mistaken for others: (a/b, c) is not (a, b/c).
            if uses.0.len() > 1 && id.bytes.contains(&b'/') {
                return Progress::Broken(Reason::BadKey);
            }
            if index > 0 {
                joined.push(b'/');
            }
            joined.extend_from_slice(&id.bytes);
        }
        Key::parse(&joined).map_or(Progress::Broken(Reason::BadKey), Progress::Found)
    }
}
