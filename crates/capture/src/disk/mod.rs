//! The disk as a consumer: segments go to files as they lie in the ring, without a copy.
//!
//! What cannot be written stays in the ring and is tried again: a full disk ends nothing, and loses nothing that the ring
//! can still hold.

mod claim;
mod file;
mod files;
mod pack;
mod policy;
mod queue;
mod sync;

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

pub use claim::Claimed;
use file::CaptureFile;
use files::Files;
pub use pack::Packed;
pub use policy::{Policy, Written};
use queue::WriteQueue;
use ring::{Consumer, Ring, RingError, Segment};

/// Writes that wait for their turn, one behind the other: more than a fast disk does from one look to the next.
const DEPTH: u32 = 4;
/// Bytes of a write, at most. A file that grows takes one write at a time (ext4 and others do no other): the disk has
/// enough at once only if a write is large.
const WRITE_MAX: u32 = 16 << 20;
/// Of the ring, so many writes: what is written has its place until all of it is on the disk.
const WRITES_OF_RING: u32 = 4;
/// From an error to the next attempt.
const AGAIN: Duration = Duration::from_secs(1);

/// Segments on their way to the disk, in one write.
struct Pending {
    /// The first of them.
    number: u64,
    segments: u64,
    /// How many of them are in the file, once the write has ended.
    written: Option<u64>,
}

/// Whether less than half of a segment is worth a place in a file.
fn has_little(segment: &Segment<'_>) -> bool {
    let room = segment.whole.map_or(0, <[u8]>::len);
    segment.blocks.len() + segment.entries.len() < room / 2
}

/// Writes what a ring holds to files.
pub struct Disk {
    consumer: Consumer,
    ring: Ring,
    // Dropped before the file and the consumer's memory that its writes are of: see `Drop`.
    queue: Option<WriteQueue>,
    files: Files,
    /// What came is on the disk after this long.
    flush: Duration,
    pending: VecDeque<Pending>,
    written: Written,
    refused_at: Option<Instant>,
    flushed_at: Instant,
    /// The segment that was asked to be closed before it is full.
    asked_to_close: Option<u64>,
}

impl Disk {
    /// Writes what `consumer`, which is lossless, gets of `ring`. The first file is opened at once: one that cannot be is
    /// an error before there is any packet.
    pub fn new(ring: Ring, consumer: Consumer, policy: Policy) -> io::Result<Self> {
        let (flush, mut written) = (policy.flush, Written::default());
        let queue = WriteQueue::new(DEPTH)?;
        let files = Files::begin(consumer.preamble(), policy, &mut written)?;
        Ok(Self {
            consumer,
            ring,
            queue: Some(queue),
            files,
            flush,
            pending: VecDeque::new(),
            written,
            refused_at: None,
            flushed_at: Instant::now(),
            asked_to_close: None,
        })
    }

    /// What has become of the packets so far.
    pub fn written(&self) -> &Written {
        &self.written
    }

    /// Whether segments are left that could go, or are on their way.
    pub fn is_busy(&self) -> bool {
        !self.pending.is_empty()
    }

    /// How often it refused so far, and why it did last, while it does.
    pub fn refusals(&self) -> (u64, Option<&str>) {
        (self.written.errors, self.written.error.as_deref())
    }

    /// One look: takes what was written off the ring, and begins to write what is there. Never waits for the disk.
    pub fn step(&mut self, now: Instant) -> Result<(), RingError> {
        self.reap(now);
        self.files.look(&mut self.written);
        self.settle(now)?;
        if self.refused_at.is_some_and(|at| now.duration_since(at) < AGAIN) {
            return Ok(());
        }
        self.begin(now)?;
        let is_idle = self.pending.is_empty() && self.refused_at.is_none();
        // A file ends when its time is over, whenever the next flush is due.
        let is_to_end = self.is_old(now) && self.asked_to_close != Some(self.consumer.next_segment());
        if is_idle && (is_to_end || now.duration_since(self.flushed_at) >= self.flush) {
            self.flushed_at = now;
            self.flush(now)?;
        }
        Ok(())
    }

    /// The producer has ended: writes all that is left, as long as the disk takes it, and ends the file with `last`.
    pub fn finish(mut self, last: &[u8]) -> Result<Written, RingError> {
        // One that refused may have room again: it is asked once more, as soon as all is back from it.
        let mut asks_again = self.refused_at.is_some();
        while !self.is_done()? {
            self.step(Instant::now())?;
            if self.refused_at.is_some() && self.pending.is_empty() {
                if !std::mem::take(&mut asks_again) {
                    break;
                }
                (self.refused_at, self.written.error) = (None, None);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        let left = self.left()?;
        self.written.lost = left;
        self.files.end(last, &mut self.written);
        self.files.finish(&mut self.written);
        Ok(self.written.clone())
    }

    fn is_done(&self) -> Result<bool, RingError> {
        Ok(self.pending.is_empty() && self.consumer.segment(self.consumer.next_segment())?.is_none())
    }

    /// Packets in the ring that were not written.
    fn left(&self) -> Result<u64, RingError> {
        let mut left = 0;
        let mut number = self.consumer.next_segment();
        while let Some(segment) = self.consumer.segment(number)? {
            left += segment.packets as u64;
            number += 1;
        }
        Ok(left)
    }

    /// Segments on their way to the disk.
    fn under_way(&self) -> u64 {
        self.pending.iter().map(|pending| pending.segments).sum()
    }

    fn refuse(&mut self, error: &io::Error, now: Instant) {
        self.written.error = Some(match error.raw_os_error() {
            Some(libc::EFBIG) => "a file may be no longer than `ulimit -f` says".into(),
            _ => error.to_string(),
        });
        self.written.errors += 1;
        self.refused_at = Some(now);
    }

    fn reap(&mut self, now: Instant) {
        let Some(queue) = &mut self.queue else { return };
        let segment = u64::from(self.ring.geometry().segment_len);
        let mut failed = None;
        while let Some(done) = queue.next_done() {
            let Some(pending) = self.pending.iter_mut().find(|pending| pending.number == done.tag) else {
                continue;
            };
            let (written, error) = match done.result {
                Ok(written) => (written as u64 / segment, None),
                Err(error) => (0, Some(error)),
            };
            if written < pending.segments {
                // What a disk that is nearly full does tells of no error, and neither does one byte more than a file may have.
                let is_long = self.files.file.as_ref().is_some_and(CaptureFile::is_at_limit);
                let short = || {
                    if is_long {
                        io::Error::from_raw_os_error(libc::EFBIG)
                    } else {
                        io::ErrorKind::StorageFull.into()
                    }
                };
                failed = failed.or_else(|| Some(error.unwrap_or_else(short)));
            }
            pending.written = Some(written);
        }
        if let Some(error) = failed.filter(|_| self.refused_at.is_none()) {
            self.refuse(&error, now);
        }
    }

    /// Gives back the segments that are written, in their order; begins anew with the first that could not be, once no write
    /// is under way.
    fn settle(&mut self, now: Instant) -> Result<(), RingError> {
        while let Some(&Pending {
            number,
            segments,
            written: Some(written),
        }) = self.pending.front()
        {
            self.took(number, written)?;
            if written < segments {
                // Those behind are at their places only if it is there, too.
                let rest = Pending {
                    number: number + written,
                    segments: segments - written,
                    written: Some(0),
                };
                self.pending[0] = rest;
                break;
            }
            self.pending.pop_front();
        }
        let all_back = self.pending.iter().all(|pending| pending.written.is_some());
        if all_back && !self.pending.is_empty() {
            self.pending.clear();
            if let Some(error) = self.files.file.as_mut().and_then(|file| file.cut().err()) {
                self.refuse(&error, now);
            }
        }
        if self.pending.is_empty() && self.refused_at.is_some_and(|at| now.duration_since(at) >= AGAIN) {
            self.refused_at = None;
            self.written.error = None;
        }
        Ok(())
    }

    /// So many segments from `number` on are in the file for good.
    fn took(&mut self, number: u64, segments: u64) -> Result<(), RingError> {
        for number in number..number + segments {
            let packets = self
                .consumer
                .segment(number)?
                .map_or(0, |segment| segment.packets as u64);
            self.consumer.release(number, packets);
            self.written.packets += packets;
        }
        if let Some(file) = self.files.file.as_mut().filter(|_| segments > 0) {
            file.grew(segments * u64::from(self.ring.geometry().segment_len));
        }
        Ok(())
    }

    /// Begins to write the segments that are closed.
    fn begin(&mut self, now: Instant) -> Result<(), RingError> {
        loop {
            let number = self.consumer.next_segment() + self.under_way();
            let Some(segment) = self.consumer.segment(number)? else {
                return Ok(());
            };
            if segment.whole.is_none() {
                return Ok(());
            }
            let has_little = has_little(&segment);
            if (has_little || self.is_full(now)) && !self.pending.is_empty() {
                return Ok(());
            }
            let packets = segment.packets as u64;
            if packets == 0 {
                self.consumer.release(number, 0);
                continue;
            }
            if self.files.file.is_none() || self.is_full(now) {
                if !self.begin_file(now) {
                    return Ok(());
                }
                continue;
            }
            if !has_little {
                if !self.begin_write(number, now)? {
                    return Ok(());
                }
                continue;
            }
            let Some(file) = &mut self.files.file else {
                return Ok(());
            };
            if let Err(error) = file.write_part(&segment, true) {
                self.refuse(&error, now);
                return Ok(());
            }
            self.consumer.release(number, packets);
            self.written.packets += packets;
        }
    }

    /// Begins to write segment `number` and those behind it, as many as are closed, belong into the file and fit one write;
    /// `false` if there is no room for another write, or the disk refuses it.
    fn begin_write(&mut self, number: u64, now: Instant) -> Result<bool, RingError> {
        let geometry = self.ring.geometry();
        let len = geometry.segment_len;
        let most = (geometry.segments / WRITES_OF_RING).min(WRITE_MAX / len);
        let most = u64::from(most).clamp(1, geometry.back_to_back(number));
        let mut segments = 0;
        while segments < most && (segments == 0 || !self.is_full_with(segments, now)) {
            match self.consumer.segment(number + segments)? {
                Some(segment) if segment.whole.is_some() && !has_little(&segment) => segments += 1,
                _ => break,
            }
        }
        let offset = self.under_way() * u64::from(len);
        let (Some(bytes), Some(file), Some(queue)) = (
            self.consumer.closed(number, segments)?,
            &mut self.files.file,
            &mut self.queue,
        ) else {
            return Ok(false);
        };
        if !queue.has_room() {
            return Ok(false);
        }
        let offset = file.place(offset, bytes.len() as u64);
        // SAFETY: the segments are closed and not released before the write has ended; the queue is dropped before the
        // consumer's memory and the file are.
        if let Err(error) = unsafe { queue.begin(file.fd(), bytes, offset, number) } {
            self.refuse(&error, now);
            return Ok(false);
        }
        self.pending.push_back(Pending {
            number,
            segments,
            written: None,
        });
        Ok(true)
    }

    /// What is in the open segment goes to the disk, where the whole segment will overwrite it. A file whose time is over
    /// ends with that: the segment is to be closed as it is.
    fn flush(&mut self, now: Instant) -> Result<(), RingError> {
        let number = self.consumer.next_segment();
        let is_empty = |segment: Segment<'_>| segment.packets == 0;
        if self.consumer.segment(number)?.is_none_or(is_empty) {
            return Ok(());
        }
        if (self.files.file.is_none() || self.is_full(now)) && !self.begin_file(now) {
            return Ok(());
        }
        let (Some(segment), Some(file)) = (self.consumer.segment(number)?, &mut self.files.file) else {
            return Ok(());
        };
        if let Err(error) = file.write_part(&segment, false) {
            self.refuse(&error, now);
            return Ok(());
        }
        if segment.whole.is_none() && self.is_old(now) && self.asked_to_close != Some(number) {
            self.asked_to_close = Some(number);
            self.ring.close_segment();
        }
        Ok(())
    }

    /// Whether the file under way has been there for as long as one shall be.
    fn is_old(&self, now: Instant) -> bool {
        self.files.is_old(now)
    }

    /// Whether the file under way has all that it shall have. What it has a part of belongs to it.
    fn is_full(&self, now: Instant) -> bool {
        self.is_full_with(0, now)
    }

    /// Whether it will have that once so many more segments are in it.
    fn is_full_with(&self, more: u64, now: Instant) -> bool {
        let segment = u64::from(self.ring.geometry().segment_len);
        self.files
            .is_full(((self.under_way() + more) * segment, segment), now)
    }

    /// Ends the file under way and begins the next one; `false` if the disk refuses it.
    fn begin_file(&mut self, now: Instant) -> bool {
        let begun = self.files.begin_next(&mut self.written);
        if let Err(error) = &begun {
            self.refuse(error, now);
        }
        begun.is_ok()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Writes under way end before what they are of goes.
        self.queue = None;
    }
}
