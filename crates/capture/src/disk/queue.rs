//! Writes under way: what the kernel reads from stays where it is until it has answered.
//!
//! A write begins when the one before it has ended. So a file has no hole, wherever its writer was killed; and a file system
//! does no two writes at once that make a file longer, anyway.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;

use io_uring::{IoUring, opcode, squeue, types};

/// A write that has ended: its tag, and how it went.
pub struct Done {
    /// What the write was begun with.
    pub tag: u64,
    /// Bytes written.
    pub result: io::Result<usize>,
}

/// Writes to files, one after the other: the kernel has the next one at hand when one ends.
pub struct WriteQueue {
    ring: IoUring,
    depth: usize,
    under_way: usize,
    done: VecDeque<Done>,
}

impl WriteQueue {
    /// A queue for `depth` writes.
    pub fn new(depth: u32) -> io::Result<Self> {
        Ok(Self {
            ring: IoUring::new(depth)?,
            depth: depth as usize,
            under_way: 0,
            done: VecDeque::new(),
        })
    }

    /// Whether another write may begin.
    pub fn has_room(&self) -> bool {
        self.under_way < self.depth
    }

    /// Begins, once those before have ended, to write `bytes` at `offset` of `file`; where it is an error, nothing of them is written ever.
    ///
    /// # Safety
    /// Nobody writes to `bytes`, and they stay mapped, until the write has ended ([`WriteQueue::next_done`]) or the queue
    /// was dropped; `file` stays open as long.
    pub unsafe fn begin(&mut self, file: RawFd, bytes: &[u8], offset: u64, tag: u64) -> io::Result<()> {
        let entry = opcode::Write::new(types::Fd(file), bytes.as_ptr(), bytes.len() as u32)
            .offset(offset)
            .build()
            .flags(squeue::Flags::IO_DRAIN)
            .user_data(tag);
        // SAFETY: upheld by the caller.
        unsafe { self.ring.submission().push(&entry) }
            .map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        self.under_way += 1;
        // It is in the queue for good: one that the kernel does not take now goes with the next look.
        let _ = self.ring.submit();
        Ok(())
    }

    /// A write that has ended.
    pub fn next_done(&mut self) -> Option<Done> {
        let _ = self.ring.submit();
        for entry in self.ring.completion() {
            self.under_way -= 1;
            let result = match entry.result() {
                written @ 0.. => Ok(written as usize),
                error => Err(io::Error::from_raw_os_error(-error)),
            };
            let tag = entry.user_data();
            self.done.push_back(Done { tag, result });
        }
        self.done.pop_front()
    }
}

impl Drop for WriteQueue {
    fn drop(&mut self) {
        // The kernel reads from memory that is about to go: it answers for each write, or the ring is broken.
        while self.under_way > 0 && self.ring.submit_and_wait(1).is_ok() {
            while self.next_done().is_some() {}
        }
    }
}
