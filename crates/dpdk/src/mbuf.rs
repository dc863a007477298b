//! One owned packet, for those that are held back one by one.

use std::{fmt, marker::PhantomData, mem};

use crate::{
    Eal,
    raw::{self, RawMbuf},
};

/// One packet, freed when dropped.
pub struct Mbuf<'e> {
    mbuf: RawMbuf,
    eal: PhantomData<&'e Eal>,
}

// SAFETY: an Mbuf is the one owner of its packet, and pools may be used from any thread.
unsafe impl Send for Mbuf<'_> {}

impl Mbuf<'_> {
    /// # Safety
    /// `mbuf` is a packet that nobody else owns.
    pub(crate) unsafe fn from_raw(mbuf: RawMbuf) -> Self {
        Self {
            mbuf,
            eal: PhantomData,
        }
    }

    pub(crate) fn into_raw(self) -> RawMbuf {
        let mbuf = self.mbuf;
        mem::forget(self);
        mbuf
    }

    /// The first segment's bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the packet is owned by `self`, which the result borrows.
        unsafe { raw::bytes(self.mbuf) }
    }

    /// The first segment's bytes, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the packet is owned by `self`, which the result borrows uniquely.
        unsafe { raw::bytes_mut(self.mbuf) }
    }

    /// Whether the packet lies in more than one buffer.
    pub fn is_segmented(&self) -> bool {
        // SAFETY: the packet is owned by `self`.
        unsafe { raw::is_segmented(self.mbuf) }
    }

    /// Makes this a fresh frame with these bytes; false, and nothing done, when they do not fit.
    pub fn copy_from(&mut self, frame: &[u8]) -> bool {
        // SAFETY: the packet is owned by `self`; its own buffer is what counts once it is written anew.
        unsafe {
            if frame.len().max(64) > raw::fresh_room_len(self.mbuf) {
                return false;
            }
            raw::write(self.mbuf, frame.len())[..frame.len()].copy_from_slice(frame);
        }
        true
    }
}

impl Drop for Mbuf<'_> {
    fn drop(&mut self) {
        // SAFETY: the packet is owned by `self` and gone after this.
        unsafe { raw::free(&mut [self.mbuf]) };
    }
}

impl fmt::Debug for Mbuf<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Mbuf")
            .field("len", &self.bytes().len())
            .finish_non_exhaustive()
    }
}
