//! What a key is: 1 to 256 bytes of UTF-8 without control characters, compared byte by byte.

use std::borrow::Cow;
use std::fmt;

use smallvec::SmallVec;

/// Longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 256;

/// Keys up to this many bytes live inside [`Key`]; longer ones take one allocation.
pub const KEY_INLINE_BYTES: usize = 48;

/// Longest server id, in bytes.
pub const SERVER_ID_BYTES_MAX: usize = 128;

/// A checked key. Owns its bytes, so that the request's headers may change under it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(SmallVec<[u8; KEY_INLINE_BYTES]>);

/// Why bytes are no key; all of them are `bad-key` to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyProblem {
    Empty,
    TooLong,
    NotUtf8,
    ControlCharacter,
    BrokenPercentEncoding,
}

impl fmt::Display for KeyProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            KeyProblem::Empty => "the key is empty",
            KeyProblem::TooLong => "the key is longer than 256 bytes",
            KeyProblem::NotUtf8 => "the key is not UTF-8",
            KeyProblem::ControlCharacter => "the key has a control character",
            KeyProblem::BrokenPercentEncoding => "a % is not followed by two hex digits",
        })
    }
}

impl std::error::Error for KeyProblem {}

impl Key {
    /// Takes bytes that stand for themselves (header, cookie, envelope).
    ///
    /// # Errors
    /// The first rule of a key that the bytes break.
    pub fn parse(bytes: &[u8]) -> Result<Key, KeyProblem> {
        check(bytes)?;
        Ok(Key(SmallVec::from_slice(bytes)))
    }

    /// Decodes percent-encoding exactly once (path, query, `x-belay-key`); `+` is no space.
    ///
    /// # Errors
    /// A broken encoding, or the rule of a key that the decoded bytes break.
    pub fn parse_percent_encoded(raw: &[u8]) -> Result<Key, KeyProblem> {
        if memchr::memchr(b'%', raw).is_none() {
            return Key::parse(raw);
        }
        if raw.len() > 3 * KEY_BYTES_MAX {
            return Err(KeyProblem::TooLong);
        }
        let mut decoded = SmallVec::new();
        let mut rest = raw.iter();
        while let Some(&byte) = rest.next() {
            decoded.push(if byte == b'%' {
                let high = hex_value(rest.next()).ok_or(KeyProblem::BrokenPercentEncoding)?;
                let low = hex_value(rest.next()).ok_or(KeyProblem::BrokenPercentEncoding)?;
                high << 4 | low
            } else {
                byte
            });
        }
        check(&decoded)?;
        Ok(Key(decoded))
    }

    /// A host label: ASCII letters become lower case.
    ///
    /// # Errors
    /// The first rule of a key that the label breaks.
    pub fn parse_host_label(label: &[u8]) -> Result<Key, KeyProblem> {
        let mut key = Key::parse(label)?;
        key.0.make_ascii_lowercase();
        Ok(key)
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// # Panics
    /// Never: the bytes were checked when the key was made.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a key is UTF-8")
    }

    /// How the key stands in a header value: unreserved characters of RFC 3986 stand for themselves,
    /// every other byte is `%XX` in upper case. Borrows when nothing needs encoding.
    #[must_use]
    pub fn to_header_value(&self) -> Cow<'_, [u8]> {
        if self.0.iter().copied().all(is_unreserved) {
            return Cow::Borrowed(&self.0);
        }
        let mut out = Vec::with_capacity(self.0.len() * 3);
        for &byte in &self.0 {
            if is_unreserved(byte) {
                out.push(byte);
            } else {
                out.extend([b'%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
            }
        }
        Cow::Owned(out)
    }
}

/// Keys are personal data (C7): their text appears only where it is asked for.
impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Key({} bytes)", self.0.len())
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Whether the bytes can be the id of a registered server: 1 to 128 of `[A-Za-z0-9._-]`.
#[must_use]
pub fn is_server_id(bytes: &[u8]) -> bool {
    (1..=SERVER_ID_BYTES_MAX).contains(&bytes.len())
        && bytes
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

pub(crate) fn check(bytes: &[u8]) -> Result<(), KeyProblem> {
    if bytes.is_empty() {
        return Err(KeyProblem::Empty);
    }
    if bytes.len() > KEY_BYTES_MAX {
        return Err(KeyProblem::TooLong);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| KeyProblem::NotUtf8)?;
    // `char::is_control` is Unicode's Cc: C0, DEL and C1.
    if text.chars().any(char::is_control) {
        return Err(KeyProblem::ControlCharacter);
    }
    Ok(())
}

/// The value of a hex digit, `None` for anything else or the end.
pub(crate) fn hex_value(digit: Option<&u8>) -> Option<u8> {
    match digit? {
        digit @ b'0'..=b'9' => Some(digit - b'0'),
        digit @ b'a'..=b'f' => Some(digit - b'a' + 10),
        digit @ b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

const fn hex_digit(value: u8) -> u8 {
    b"0123456789ABCDEF"[value as usize]
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::{Key, is_server_id};

    fn vectors() -> Value {
        serde_json::from_str(include_str!("../../../proto/testdata/keys.json")).expect("keys.json")
    }

    fn rows<'v>(all: &'v Value, name: &str) -> &'v Vec<Value> {
        all[name].as_array().expect("an array of vectors")
    }

    #[test]
    fn valid_vectors_pass_and_are_encoded_as_stated() {
        for row in rows(&vectors(), "valid") {
            let text = row["key"].as_str().expect("key");
            let key = Key::parse(text.as_bytes()).expect(text);
            assert_eq!(key.as_str(), text);
            assert_eq!(
                *key.to_header_value(),
                *row["header"].as_str().expect("header").as_bytes()
            );
            assert_eq!(Key::parse_percent_encoded(&key.to_header_value()), Ok(key));
        }
    }

    #[test]
    fn invalid_vectors_are_refused() {
        for row in rows(&vectors(), "invalid") {
            let bytes = match (row["hex"].as_str(), row["repeat"].as_u64()) {
                (Some(hex), _) => (0..hex.len() / 2)
                    .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex"))
                    .collect(),
                (_, Some(times)) => vec![b'k'; usize::try_from(times).expect("small")],
                _ => panic!("a vector without hex or repeat: {row}"),
            };
            assert!(Key::parse(&bytes).is_err(), "{row}");
        }
    }

    #[test]
    fn percent_decoding_vectors_are_kept() {
        for row in rows(&vectors(), "percentDecoding") {
            let key = Key::parse_percent_encoded(row["in"].as_str().expect("in").as_bytes());
            assert_eq!(
                key.as_ref().map(Key::as_str).ok(),
                row["key"].as_str(),
                "{row}"
            );
        }
    }

    #[test]
    fn server_ids_have_their_own_alphabet() {
        assert!(is_server_id(b"host-1.a_B"));
        for bad in [&b""[..], b"a b", b"a/b", "ä".as_bytes(), &[b'a'; 129]] {
            assert!(!is_server_id(bad));
        }
    }

    proptest! {
        #[test]
        fn any_key_survives_its_header_encoding(text in "\\PC{1,60}") {
            if let Ok(key) = Key::parse(text.as_bytes()) {
                let header = key.to_header_value();
                prop_assert!(header.iter().all(u8::is_ascii_graphic));
                prop_assert_eq!(Key::parse_percent_encoded(&header), Ok(key.clone()));
            }
        }

        #[test]
        fn any_bytes_are_a_key_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            for key in [Key::parse(&bytes), Key::parse_percent_encoded(&bytes)].into_iter().flatten() {
                prop_assert!((1..=256).contains(&key.as_bytes().len()));
                prop_assert!(!key.as_str().chars().any(char::is_control));
            }
        }
    }
}
