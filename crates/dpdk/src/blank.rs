//! A packet about to be written anew, lent by its burst.

use std::marker::PhantomData;

use crate::raw::{self, RawMbuf};

/// A packet about to be written anew.
#[derive(Debug)]
pub struct Blank<'b> {
    mbuf: RawMbuf,
    plain_room: usize,
    burst: PhantomData<&'b mut [u8]>,
}

impl<'b> Blank<'b> {
    /// # Safety
    /// The packet is borrowed uniquely for 'b from its owner. It is plain and has a room of `plain_room` bytes, which
    /// is 0 when that is not known.
    #[inline]
    pub(crate) unsafe fn new(mbuf: RawMbuf, plain_room: usize) -> Self {
        Self {
            mbuf,
            plain_room,
            burst: PhantomData,
        }
    }

    /// Makes it a fresh frame of `len` bytes (without FCS) and returns the room to write it: `len` bytes, at least 64.
    /// # Panics
    /// When the pool's room is shorter.
    #[inline]
    pub fn write(self, len: usize) -> &'b mut [u8] {
        // SAFETY: by `new`.
        unsafe {
            if len.max(raw::ROOM_MIN) <= self.plain_room {
                raw::write_plain(self.mbuf, len)
            } else {
                raw::write(self.mbuf, len)
            }
        }
    }
}
