//! All headers of a map at once.
//!
//! Envoy looks a name up by a hash table that it builds at a map's first look-up, so one walk is far
//! cheaper than any look-up of a name that is not Envoy's own.

use super::foreign::Header;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

/// Maps up to this size are read without an allocation.
const INLINE: usize = 32;

/// The headers of a map, in their order, as they are before the stream changes.
#[derive(Clone, Copy)]
pub struct Headers<'a> {
    all: &'a [Header],
    envoy: PhantomData<&'a [u8]>,
}

impl<'a> Headers<'a> {
    /// Names (in lower case) and values.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        // `read` was promised bytes that outlive 'a.
        self.all
            .iter()
            .map(|header| unsafe { (header.key.bytes(), header.value.bytes()) })
    }

    /// The value number `index` (from 0) of a header.
    #[must_use]
    pub fn get(self, name: &str, index: usize) -> Option<&'a [u8]> {
        let named = |(header, _): &(&[u8], &[u8])| *header == name.as_bytes();
        Some(self.iter().filter(named).nth(index)?.1)
    }
}

/// Hands all headers to `act`.
///
/// # Safety
/// `fill` writes exactly `count` headers, whose bytes stay valid while `act` runs.
pub(super) unsafe fn read<R>(
    count: usize,
    fill: impl FnOnce(*mut Header) -> bool,
    act: impl for<'a> FnOnce(Headers<'a>) -> R,
) -> R {
    let mut inline = [const { MaybeUninit::<Header>::uninit() }; INLINE];
    let mut heap = Vec::new();
    let room: &mut [MaybeUninit<Header>] = if count <= INLINE {
        &mut inline[..count]
    } else {
        heap.resize(count, MaybeUninit::uninit());
        &mut heap
    };
    let filled = count > 0 && fill(room.as_mut_ptr().cast());
    let all = if filled {
        unsafe { room.assume_init_ref() }
    } else {
        &[]
    };
    act(Headers {
        all,
        envoy: PhantomData,
    })
}
