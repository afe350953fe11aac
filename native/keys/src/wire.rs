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
