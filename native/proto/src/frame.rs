//! The wire: u32 big-endian length, then one `Frame`.

use prost::Message;

use crate::v1::Frame;

/// Longest frame in bytes, without its length prefix.
pub const FRAME_BYTES_MAX: usize = 1 << 20;

const PREFIX_BYTES: usize = 4;

/// Why bytes are no frame. The connection cannot be used any further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameError {
    /// A length of 0 or above `FRAME_BYTES_MAX`.
    Length(usize),
    /// Not the encoding of a `Frame`.
    Broken(String),
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FrameError::Length(length) => {
                write!(
                    f,
                    "a frame of {length} bytes, allowed are 1 to {FRAME_BYTES_MAX}"
                )
            }
            FrameError::Broken(why) => write!(f, "a frame that cannot be decoded: {why}"),
        }
    }
}

impl std::error::Error for FrameError {}

/// Appends the frame to `out`. Fails, leaving `out` as it was, when the frame is empty or too long.
pub fn encode(frame: &Frame, out: &mut Vec<u8>) -> Result<(), FrameError> {
    let length = frame.encoded_len();
    let prefix = u32::try_from(length)
        .ok()
        .filter(|_| (1..=FRAME_BYTES_MAX).contains(&length));
    let Some(prefix) = prefix else {
        return Err(FrameError::Length(length));
    };
    out.reserve(PREFIX_BYTES + length);
    out.extend_from_slice(&prefix.to_be_bytes());
    frame.encode_raw(out);
    Ok(())
}

/// Takes bytes as they arrive, gives whole frames. Holds at most one frame and what one `push`
/// brought.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    taken: usize,
}

impl Decoder {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes. Call `next_frame` until it gives `None` before the next push, or bytes pile up.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame. A length is refused as soon as its four bytes are there. After an
    /// error every further call fails too.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = &self.bytes[self.taken..];
        let Some((prefix, rest)) = rest.split_first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*prefix) as usize;
        if !(1..=FRAME_BYTES_MAX).contains(&length) {
            return Err(FrameError::Length(length));
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = Frame::decode(body).map_err(|error| FrameError::Broken(error.to_string()))?;
        self.taken += PREFIX_BYTES + length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::v1::{Ping, Problem, frame::Body};

    fn problem(message: String, request_id: u32) -> Frame {
        let problem = Problem {
            code: "x".into(),
            message,
            request_id,
            ..Problem::default()
        };
        Frame {
            body: Some(Body::Problem(problem)),
        }
    }

    proptest! {
        #[test]
        fn frames_survive_any_cut(messages in prop::collection::vec((".{0,40}", any::<u32>()), 1..20), chunk in 1usize..50) {
            let sent: Vec<Frame> = messages.into_iter().map(|(text, id)| problem(text, id)).collect();
            let mut wire = Vec::new();
            for frame in &sent {
                encode(frame, &mut wire).unwrap();
            }
            let mut decoder = Decoder::new();
            let mut got = Vec::new();
            for piece in wire.chunks(chunk) {
                decoder.push(piece);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    got.push(frame);
                }
            }
            prop_assert_eq!(got, sent);
        }

        #[test]
        fn any_bytes_end_in_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut decoder = Decoder::new();
            decoder.push(&bytes);
            while let Ok(Some(_)) = decoder.next_frame() {}
        }
    }

    #[test]
    fn lengths_out_of_bounds_are_refused_at_once() {
        for length in [0u32, (1 << 20) + 1, u32::MAX] {
            let mut decoder = Decoder::new();
            decoder.push(&length.to_be_bytes());
            assert_eq!(
                decoder.next_frame(),
                Err(FrameError::Length(length as usize))
            );
            assert_eq!(
                decoder.next_frame(),
                Err(FrameError::Length(length as usize))
            );
        }
    }

    #[test]
    fn a_frame_that_is_too_long_or_empty_is_not_written() {
        let mut out = vec![7];
        assert!(encode(&problem("x".repeat(FRAME_BYTES_MAX), 1), &mut out).is_err());
        assert!(encode(&Frame { body: None }, &mut out).is_err());
        assert_eq!(out, [7]);
        encode(
            &Frame {
                body: Some(Body::Ping(Ping { nonce: 3 })),
            },
            &mut out,
        )
        .unwrap();
        assert_eq!(&out[1..5], [0, 0, 0, 4]);
    }

    #[test]
    fn deep_nesting_is_an_error() {
        // Starts of group 1, each inside the one before.
        let body = vec![0x0b; 20_000];
        let mut decoder = Decoder::new();
        decoder.push(&u32::try_from(body.len()).unwrap().to_be_bytes());
        decoder.push(&body);
        assert!(matches!(decoder.next_frame(), Err(FrameError::Broken(_))));
    }
}
