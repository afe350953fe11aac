//! The frame scanner: portions change no boundary, and only a boundary takes a close frame.
#![no_main]

use belay_keys::{Boundaries, FrameScanner, close_frame};
use libfuzzer_sys::fuzz_target;

/// What was told last, and the last message boundary counted from the start.
fn scan(stream: &[u8], size: usize) -> (Boundaries, Option<usize>) {
    let mut scanner = FrameScanner::new();
    let mut told = scanner.feed(b"");
    let mut message_end = told.message_end;
    for (at, chunk) in stream.chunks(size).enumerate() {
        told = scanner.feed(chunk);
        assert!(told.message_end.is_none() || told.message_end <= told.frame_end);
        message_end = told.message_end.map(|end| at * size + end).or(message_end);
    }
    (
        Boundaries {
            frame_end: None,
            message_end: None,
            ..told
        },
        message_end,
    )
}

fuzz_target!(|data: &[u8]| {
    let Some((&size, stream)) = data.split_first() else {
        return;
    };
    let whole = scan(stream, usize::MAX);
    assert_eq!(scan(stream, usize::from(size).max(1)), whole);
    assert_eq!(scan(stream, 1), whole);
    let (told, Some(end)) = whole else { return };
    if !told.closed {
        let closed = [&stream[..end], &close_frame(4421, "moved")].concat();
        let (told, at) = scan(&closed, usize::MAX);
        assert!(told.closed && told.at_message && at == Some(closed.len()));
    }
});
