use belay_keys::websocket::CLOSE_MOVED;
use belay_keys::{Boundaries, FrameScanner, close_frame};
use proptest::prelude::*;

fn frame(first: u8, length: usize, mask: bool) -> Vec<u8> {
    let bit = if mask { 0x80 } else { 0 };
    let mut out = vec![first];
    match length {
        0..=125 => out.push(bit | u8::try_from(length).expect("small")),
        126..=0xffff => {
            out.push(bit | 0x7e);
            out.extend(u16::try_from(length).expect("small").to_be_bytes());
        }
        _ => {
            out.push(bit | 0x7f);
            out.extend((length as u64).to_be_bytes());
        }
    }
    out.resize(out.len() + length + if mask { 4 } else { 0 }, 0xaa);
    out
}

const TEXT: u8 = 0x81;
const TEXT_BEGIN: u8 = 0x01;
const MORE: u8 = 0x00;
const LAST: u8 = 0x80;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;

#[test]
fn whole_messages_end_at_their_last_byte() {
    for length in [0, 1, 125, 126, 65_535, 65_536] {
        for mask in [false, true] {
            let bytes = frame(TEXT, length, mask);
            let told = FrameScanner::new().feed(&bytes);
            assert!(told.at_message && !told.broken, "{length}");
            assert_eq!(
                (told.frame_end, told.message_end),
                (Some(bytes.len()), Some(bytes.len()))
            );
        }
    }
}

#[test]
fn control_frames_between_fragments_end_no_message() {
    let mut scanner = FrameScanner::new();
    let bytes = [
        frame(TEXT, 3, false),
        frame(TEXT_BEGIN, 2, false),
        frame(PING, 1, false),
    ]
    .concat();
    let told = scanner.feed(&bytes);
    assert!(!told.at_message);
    assert_eq!(
        (told.frame_end, told.message_end),
        (Some(bytes.len()), Some(5))
    );
    let told = scanner.feed(&frame(MORE, 9, false));
    assert_eq!((told.frame_end, told.message_end), (Some(11), None));
    let told = scanner.feed(&frame(LAST, 0, false));
    assert_eq!((told.frame_end, told.message_end), (Some(2), Some(2)));
    let told = scanner.feed(&frame(PING, 0, false)[..1]);
    assert!(!told.at_message);
    assert_eq!((told.frame_end, told.message_end), (Some(0), Some(0)));
}

#[test]
fn a_close_of_the_server_is_the_last_frame() {
    let mut scanner = FrameScanner::new();
    assert!(scanner.feed(&close_frame(1000, "bye")).closed);
    assert!(scanner.feed(&frame(TEXT, 0, false)).broken);
}

#[test]
fn what_is_no_websocket_is_broken_for_good() {
    let long_ping = [PING, 126, 0, 0];
    let endless = [TEXT, 127, 0x80, 0, 0, 0, 0, 0, 0, 0];
    let nested = [frame(TEXT_BEGIN, 0, false), frame(TEXT, 0, false)].concat();
    for bytes in [
        &b"\x83\0"[..],
        &[0x09, 0],
        &long_ping,
        &endless,
        &frame(MORE, 0, false),
        &nested,
    ] {
        let mut scanner = FrameScanner::new();
        assert!(scanner.feed(bytes).broken, "{bytes:?}");
        let told = scanner.feed(&frame(TEXT, 0, false));
        assert!(told.broken && !told.at_message && told.frame_end.is_none());
    }
}

#[test]
fn the_close_frame_fits_and_is_one() {
    assert_eq!(close_frame(CLOSE_MOVED, "moved"), b"\x88\x07\x11\x45moved");
    for reason in ["", &"x".repeat(200), &"ä".repeat(100)] {
        let bytes = close_frame(CLOSE_MOVED, reason);
        assert!(bytes.len() <= 127 && std::str::from_utf8(&bytes[4..]).is_ok());
        let told = FrameScanner::new().feed(&bytes);
        assert!(told.closed && told.at_message && !told.broken);
    }
}

/// A legal stream and where its messages end.
fn stream(script: &[(u8, usize, bool)]) -> Vec<u8> {
    let mut in_message = false;
    let mut out = Vec::new();
    for &(kind, length, mask) in script {
        let first = match (kind % 4, in_message) {
            (0, false) => TEXT,
            (1, false) => TEXT_BEGIN,
            (0, true) => LAST,
            (1, true) => MORE,
            (2, _) => PING,
            _ => 0x8a,
        };
        in_message = match first {
            TEXT_BEGIN | MORE => true,
            TEXT | LAST => false,
            _ => in_message,
        };
        let length = if first >= CLOSE { length % 126 } else { length };
        out.extend(frame(first, length, mask));
    }
    out
}

fn last_of(bytes: &[u8], size: usize) -> (Boundaries, Option<usize>) {
    let mut scanner = FrameScanner::new();
    let mut told = scanner.feed(b"");
    let mut message_end = told.message_end;
    for (at, chunk) in bytes.chunks(size).enumerate() {
        told = scanner.feed(chunk);
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

proptest! {
    #[test]
    fn portions_change_nothing(
        script in proptest::collection::vec((any::<u8>(), 0_usize..400, any::<bool>()), 0..12),
        cut in any::<prop::sample::Index>(),
        size in 1_usize..200,
    ) {
        let mut bytes = stream(&script);
        prop_assert!(!last_of(&bytes, usize::MAX).0.broken);
        bytes.truncate(cut.index(bytes.len() + 1));
        prop_assert_eq!(last_of(&bytes, size), last_of(&bytes, usize::MAX));
    }

    #[test]
    fn garbage_in_portions_changes_nothing(
        bytes in proptest::collection::vec(any::<u8>(), 1..100),
        size in 1_usize..20,
    ) {
        prop_assert_eq!(last_of(&bytes, size), last_of(&bytes, usize::MAX));
    }
}
