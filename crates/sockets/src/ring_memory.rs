//! The buffers that the kernel picks from when a packet arrives for a standing request, and the ring it takes them from.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

/// A ring of buffers shared with the kernel. The kernel takes buffers at its head; we put them back at its tail.
pub struct BufferRing {
    entries: NonNull<BufRingEntry>,
    buffers: NonNull<u8>,
    count: u16,
    size: usize,
    tail: u16,
}

// SAFETY: it owns both areas; the kernel's end of the ring is not tied to a thread of ours.
unsafe impl Send for BufferRing {}

const PAGE: usize = 4096;

impl BufferRing {
    /// `count` buffers, a power of two, of `size` bytes, all of them on offer.
    pub fn new(count: u16, size: usize) -> Self {
        let size = size.next_multiple_of(64);
        let mut ring = Self {
            entries: page_aligned(Self::ring_layout(count)).cast(),
            buffers: page_aligned(Self::buffer_layout(count, size)),
            count,
            size,
            tail: 0,
        };
        for index in 0..count {
            ring.give(index);
        }
        ring.publish();
        ring
    }

    fn ring_layout(count: u16) -> Layout {
        Layout::array::<BufRingEntry>(usize::from(count))
            .and_then(|layout| layout.align_to(PAGE))
            .unwrap_or(Layout::new::<u128>())
    }

    fn buffer_layout(count: u16, size: usize) -> Layout {
        Layout::from_size_align(usize::from(count) * size, PAGE).unwrap_or(Layout::new::<u128>())
    }

    /// Where the ring lies, for the kernel.
    pub fn address(&self) -> u64 {
        self.entries.as_ptr() as u64
    }

    /// How many buffers there are.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The first `len` bytes of buffer `index`, which the kernel has filled and given to us.
    pub fn bytes(&self, index: u16, len: usize) -> &[u8] {
        let index = usize::from(index % self.count);
        // SAFETY: within the area of `count` buffers of `size` bytes, all initialised. The kernel does not write to a
        // buffer that it has handed over until it is given back, which needs `&mut self`.
        unsafe {
            std::slice::from_raw_parts(self.buffers.as_ptr().add(index * self.size), len.min(self.size))
        }
    }

    /// Puts buffer `index` back; on offer after [`Self::publish`].
    pub fn give(&mut self, index: u16) {
        let index = index % self.count;
        let slot = usize::from(self.tail % self.count);
        // SAFETY: `slot` is within the ring. The kernel reads entries between its head and the published tail only: this
        // one lies beyond, as no more buffers are put in than there are. Field by field, because the first entry's last
        // field is the tail.
        unsafe {
            let entry = &mut *self.entries.as_ptr().add(slot);
            entry.set_addr(self.buffers.as_ptr().add(usize::from(index) * self.size) as u64);
            entry.set_len(self.size as u32);
            entry.set_bid(index);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Shows the kernel what was put back.
    pub fn publish(&mut self) {
        // SAFETY: the tail lies in the first entry, aligned, and lives as long as the ring; the kernel reads it
        // atomically.
        let tail = unsafe { &*BufRingEntry::tail(self.entries.as_ptr()).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        // SAFETY: allocated with these layouts; the ring was given up by the kernel before, as the receiver drops its
        // io_uring first.
        unsafe {
            dealloc(self.entries.as_ptr().cast(), Self::ring_layout(self.count));
            dealloc(self.buffers.as_ptr(), Self::buffer_layout(self.count, self.size));
        }
    }
}

fn page_aligned(layout: Layout) -> NonNull<u8> {
    // SAFETY: no layout here is of size zero.
    let area = unsafe { alloc_zeroed(layout) };
    NonNull::new(area).unwrap_or_else(|| handle_alloc_error(layout))
}
