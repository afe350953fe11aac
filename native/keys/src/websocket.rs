//! Where WebSocket frames and messages of one direction end (RFC 6455 section 5), in O(1) memory.
//!
//! When a key moves, its sockets are closed with 4421 after the message in hand (M2, W2). A close
//! frame may stand only between two frames, and cuts no message only between two messages.

/// Close code of a socket whose key has moved.
pub const CLOSE_MOVED: u16 = 4421;

/// Longest payload of a control frame.
const CONTROL_BYTES_MAX: u8 = 125;

const CONTINUATION: u8 = 0;
const CLOSE: u8 = 8;

/// What a chunk told about boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundaries {
    /// The stream stands between two messages after this chunk.
    pub at_message: bool,
    /// Bytes of the chunk before the last place in it that lies between two frames; 0: before its
    /// first byte, the chunk's length: the stream stands there now.
    pub frame_end: Option<usize>,
    /// Bytes of the chunk before the last place in it that lies between two messages.
    pub message_end: Option<usize>,
    /// A close frame has passed: the sender is done.
    pub closed: bool,
    /// This is no WebSocket stream (any more); all boundaries are unknown from here on.
    pub broken: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// FIN, reserved bits, opcode. The only step between two frames.
    Start,
    /// Mask bit and short length.
    Length,
    /// `left` bytes of a 16 or 64 bit length.
    Extended {
        left: u8,
    },
    Payload {
        left: u64,
    },
    Broken,
}

/// The scanner of one direction of one socket.
#[derive(Clone, Debug)]
pub struct FrameScanner {
    step: Step,
    length: u64,
    /// The masking key is skipped with the payload.
    mask_bytes: u64,
    fin: bool,
    opcode: u8,
    /// A message has begun and its last fragment has not.
    in_message: bool,
    closed: bool,
}

impl Default for FrameScanner {
    fn default() -> FrameScanner {
        FrameScanner::new()
    }
}

impl FrameScanner {
    /// Stands before the first byte after the 101.
    #[must_use]
    pub fn new() -> FrameScanner {
        FrameScanner {
            step: Step::Start,
            length: 0,
            mask_bytes: 0,
            fin: false,
            opcode: 0,
            in_message: false,
            closed: false,
        }
    }

    /// Whether the stream stands between two messages now.
    #[must_use]
    pub fn at_message(&self) -> bool {
        matches!(self.step, Step::Start) && !self.in_message
    }

    /// The next bytes, in any portions.
    pub fn feed(&mut self, chunk: &[u8]) -> Boundaries {
        let mut frame_end = None;
        let mut message_end = None;
        let mut at = 0;
        loop {
            if let Step::Payload { left: 0 } = self.step {
                self.end_frame();
            }
            if let Step::Start = self.step {
                frame_end = Some(at);
                if !self.in_message {
                    message_end = Some(at);
                }
            }
            if at == chunk.len() || matches!(self.step, Step::Broken) {
                break;
            }
            at += self.consume(&chunk[at..]);
        }
        Boundaries {
            at_message: self.at_message(),
            frame_end,
            message_end,
            closed: self.closed,
            broken: matches!(self.step, Step::Broken),
        }
    }

    /// Takes at least one byte and says how many.
    fn consume(&mut self, rest: &[u8]) -> usize {
        match self.step {
            Step::Start => self.start(rest[0]),
            Step::Length => self.short_length(rest[0]),
            Step::Extended { left } => self.extended_length(left, rest[0]),
            Step::Payload { left } => {
                let used = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
                self.step = Step::Payload {
                    left: left - used as u64,
                };
                return used;
            }
            Step::Broken => return rest.len(),
        }
        1
    }

    fn start(&mut self, byte: u8) {
        self.fin = byte & 0x80 != 0;
        self.opcode = byte & 0x0f;
        let control = self.opcode >= CLOSE;
        let known = matches!(self.opcode, 0..=2 | 8..=10);
        // A continuation needs a message that has begun, and a new message one that has ended.
        let in_order = control || (self.opcode == CONTINUATION) == self.in_message;
        let good = known && in_order && (self.fin || !control) && !self.closed;
        self.step = if good { Step::Length } else { Step::Broken };
    }

    fn short_length(&mut self, byte: u8) {
        self.mask_bytes = if byte & 0x80 == 0 { 0 } else { 4 };
        self.length = 0;
        let length = byte & 0x7f;
        match length {
            126 | 127 if self.opcode >= CLOSE => self.step = Step::Broken,
            126 => self.step = Step::Extended { left: 2 },
            127 => self.step = Step::Extended { left: 8 },
            _ => self.begin_payload(u64::from(length)),
        }
    }

    fn extended_length(&mut self, left: u8, byte: u8) {
        if left == 8 && byte & 0x80 != 0 {
            self.step = Step::Broken;
            return;
        }
        self.length = self.length << 8 | u64::from(byte);
        if left > 1 {
            self.step = Step::Extended { left: left - 1 };
        } else {
            self.begin_payload(self.length);
        }
    }

    fn begin_payload(&mut self, length: u64) {
        self.step = Step::Payload {
            left: length + self.mask_bytes,
        };
    }

    fn end_frame(&mut self) {
        self.step = Step::Start;
        if self.opcode < CLOSE {
            self.in_message = !self.fin;
        }
        self.closed |= self.opcode == CLOSE;
    }
}

/// A close frame as a server sends it, unmasked. A reason longer than 123 bytes is cut at a character.
#[must_use]
pub fn close_frame(code: u16, reason: &str) -> Vec<u8> {
    let end = reason.floor_char_boundary(usize::from(CONTROL_BYTES_MAX - 2));
    let length = u8::try_from(2 + end).unwrap_or(CONTROL_BYTES_MAX);
    let mut frame = vec![0x80 | CLOSE, length];
    frame.extend(code.to_be_bytes());
    frame.extend(&reason.as_bytes()[..end]);
    frame
}
