//! The protobuf wire format, as far as it must be known to walk a message.

/// Longest message and field, as protobuf has it: 2 GiB - 1.
pub(crate) const MESSAGE_BYTES_MAX: u64 = 0x7fff_ffff;

/// A varint that arrives byte by byte.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Varint {
    value: u64,
    bytes: u8,
}

impl Varint {
    pub(crate) fn is_empty(self) -> bool {
        self.bytes == 0
    }

    /// `Ok(Some)` at the last byte, which also makes it ready for the next one. Fails after ten bytes
    /// without an end, and when the value needs more than 64 bits.
    pub(crate) fn push(&mut self, byte: u8) -> Result<Option<u64>, ()> {
        let bits = u64::from(byte & 0x7f);
        if self.bytes == 9 && byte > 1 {
            return Err(());
        }
        self.value |= bits << (7 * self.bytes);
        self.bytes += 1;
        if byte & 0x80 != 0 {
            return Ok(None);
        }
        let value = self.value;
        *self = Varint::default();
        Ok(Some(value))
    }
}

/// Field number and wire type; `None` if no field can have this tag.
pub(crate) fn split_tag(tag: u64) -> Option<(u32, u8)> {
    let tag = u32::try_from(tag).ok()?;
    let field = tag >> 3;
    (field != 0).then_some((field, (tag & 7) as u8))
}

#[cfg(test)]
mod tests {
    use super::{Varint, split_tag};

    fn read(bytes: &[u8]) -> Result<Option<u64>, ()> {
        let mut varint = Varint::default();
        let mut last = Ok(None);
        for &byte in bytes {
            last = varint.push(byte);
            last?;
        }
        last
    }

    #[test]
    fn a_varint_has_at_most_ten_bytes_and_64_bits() {
        assert_eq!(read(&[0x96, 0x01]), Ok(Some(150)));
        assert_eq!(read(&[0x96]), Ok(None));
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(read(&most), Ok(Some(u64::MAX)));
        for last in [2, 0x7f, 0x80, 0x81] {
            assert_eq!(read(&[&most[..9], &[last]].concat()), Err(()));
        }
    }

    #[test]
    fn tags_have_a_field_number_of_29_bits() {
        assert_eq!(split_tag(0x0a), Some((1, 2)));
        assert_eq!(split_tag(0xffff_ffff), Some(((1 << 29) - 1, 7)));
        assert_eq!(split_tag(0x1_0000_0008), None);
        assert_eq!(split_tag(7), None);
    }
}
