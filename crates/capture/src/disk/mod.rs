//! The disk as a consumer: segments go to files as they lie in the ring, without a copy.
//!
//! What cannot be written stays in the ring and is tried again: a full disk ends nothing, and loses nothing that the ring
//! can still hold.

mod file;
mod pack;
mod queue;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use file::CaptureFile;
pub use pack::Packed;
use pack::Packer;
use queue::WriteQueue;
use ring::{Consumer, Ring, RingError, Segment};

/// Writes at once: as many as a fast disk has done from one look to the next, and again.
const DEPTH: u32 = 16;
/// From an error to the next attempt.
const AGAIN: Duration = Duration::from_secs(1);

/// Which files are written.
pub struct Policy {
    /// The name of each file, by its number from 1 on.
    pub name: Box<dyn Fn(u64) -> PathBuf + Send>,
    /// A file is ended when it has this many bytes.
    pub size: Option<u64>,
    /// A file is ended after this long.
    pub every: Option<Duration>,
    /// Only the newest so many files are kept.
    pub files: Option<usize>,
    /// The user and group that new files are given to; `None` leaves them ours.
    pub owner: Option<(u32, u32)>,
    /// What came is on the disk after this long, however little it is.
    pub flush: Duration,
    /// Files are compressed once they are closed.
    pub compress: bool,
}

/// What has become of the packets so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Packets that are in files.
    pub packets: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Files that were begun.
    pub files: u64,
    /// Such as go through the page cache, since their file system cannot do without.
    pub cached: u64,
    /// Whether the disk refuses to be written just now, or did so at the end.
    pub error: Option<String>,
    /// How often it refused.
    pub errors: u64,
    /// Packets that were still in the ring when the disk refused for the last time.
    pub lost: u64,
    /// What was compressed, where that was asked for.
    pub packed: Option<Packed>,
}

/// A segment on its way to the disk.
struct Pending {
    number: u64,
    packets: u64,
    result: Option<io::Result<()>>,
}

/// Writes what a ring holds to files.
pub struct Disk {
    consumer: Consumer,
    ring: Ring,
    // Dropped before the file and the consumer's memory that its writes are of: see `Drop`.
    queue: Option<WriteQueue>,
    policy: Policy,
    preamble: Vec<u8>,
    file: Option<CaptureFile>,
    /// Files that are there, the oldest first.
    files: VecDeque<PathBuf>,
    pending: VecDeque<Pending>,
    written: Written,
    refused_at: Option<Instant>,
    flushed_at: Instant,
    /// The segment that was asked to be closed before it is full.
    asked_to_close: Option<u64>,
    packer: Option<Packer>,
}

impl Disk {
    /// Writes what `consumer`, which is lossless, gets of `ring`. The first file is opened at once: one that cannot be is
    /// an error before there is any packet.
    pub fn new(ring: Ring, consumer: Consumer, policy: Policy) -> io::Result<Self> {
        let mut disk = Self {
            preamble: consumer.preamble(),
            consumer,
            ring,
            queue: Some(WriteQueue::new(DEPTH)?),
            packer: policy.compress.then(Packer::start).transpose()?,
            policy,
            file: None,
            files: VecDeque::new(),
            pending: VecDeque::new(),
            written: Written::default(),
            refused_at: None,
            flushed_at: Instant::now(),
            asked_to_close: None,
        };
        disk.open()?;
        Ok(disk)
    }

    /// What has become of the packets so far.
    pub fn written(&self) -> &Written {
        &self.written
    }

    /// Whether segments are left that could go, or are on their way.
    pub fn is_busy(&self) -> bool {
        !self.pending.is_empty()
    }

    /// One look: takes what was written off the ring, and begins to write what is there. Never waits for the disk.
    pub fn step(&mut self, now: Instant) -> Result<(), RingError> {
        self.reap(now);
        self.settle(now);
        if self.refused_at.is_some_and(|at| now.duration_since(at) < AGAIN) {
            return Ok(());
        }
        self.begin(now)?;
        let is_idle = self.pending.is_empty() && self.refused_at.is_none();
        if is_idle && now.duration_since(self.flushed_at) >= self.policy.flush {
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
        self.end_file(last);
        self.written.packed = self.packer.take().map(Packer::finish);
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

    fn refuse(&mut self, error: &io::Error, now: Instant) {
        self.written.error = Some(error.to_string());
        self.written.errors += 1;
        self.refused_at = Some(now);
    }

    fn reap(&mut self, now: Instant) {
        let Some(queue) = &mut self.queue else { return };
        let segment = self.ring.geometry().segment_len as usize;
        while let Some(done) = queue.next_done() {
            if let Some(pending) = self.pending.iter_mut().find(|pending| pending.number == done.tag) {
                pending.result = Some(done.result.and_then(|written| match written {
                    written if written == segment => Ok(()),
                    // What a disk that is nearly full does.
                    _ => Err(io::ErrorKind::StorageFull.into()),
                }));
            }
        }
        let failed = self.pending.iter().find_map(|pending| match &pending.result {
            Some(Err(error)) => Some(io::Error::new(error.kind(), error.to_string())),
            _ => None,
        });
        if let Some(error) = failed.filter(|_| self.refused_at.is_none()) {
            self.refuse(&error, now);
        }
    }

    /// Gives back the segments that are written, in their order; begins anew with the first that could not be, once none is
    /// under way.
    fn settle(&mut self, now: Instant) {
        while let Some(Pending {
            result: Some(Ok(())),
            number,
            packets,
        }) = self.pending.front()
        {
            self.consumer.release(*number, *packets);
            self.written.packets += packets;
            if let Some(file) = &mut self.file {
                file.grew(u64::from(self.ring.geometry().segment_len));
            }
            self.pending.pop_front();
        }
        let all_back = self.pending.iter().all(|pending| pending.result.is_some());
        if all_back && !self.pending.is_empty() {
            self.pending.clear();
            if let Some(error) = self.file.as_mut().and_then(|file| file.cut().err()) {
                self.refuse(&error, now);
            }
        }
        if self.pending.is_empty() && self.refused_at.is_some_and(|at| now.duration_since(at) >= AGAIN) {
            self.refused_at = None;
            self.written.error = None;
        }
    }

    /// Begins to write the segments that are closed.
    fn begin(&mut self, now: Instant) -> Result<(), RingError> {
        loop {
            let number = self.consumer.next_segment() + self.pending.len() as u64;
            let Some(segment) = self.consumer.segment(number)? else {
                return Ok(());
            };
            let Some(whole) = segment.whole else { return Ok(()) };
            let has_little = segment.blocks.len() + segment.entries.len() < whole.len() / 2;
            if (has_little || self.is_full(now)) && !self.pending.is_empty() {
                return Ok(());
            }
            if segment.packets == 0 {
                self.consumer.release(number, 0);
                continue;
            }
            if self.file.is_none() || self.is_full(now) {
                if !self.begin_file(now) {
                    return Ok(());
                }
                continue;
            }
            let (Some(file), Some(queue)) = (&mut self.file, &mut self.queue) else {
                return Ok(());
            };
            let packets = segment.packets as u64;
            if has_little {
                if let Err(error) = file.write_part(&segment, true) {
                    self.refuse(&error, now);
                    return Ok(());
                }
                self.consumer.release(number, packets);
                self.written.packets += packets;
                continue;
            }
            if !queue.has_room() {
                return Ok(());
            }
            let offset = file.place(self.pending.len() as u64, whole.len() as u64);
            // SAFETY: the segment is closed and not released before the write has ended; the queue is dropped before the
            // consumer's memory and the file are.
            if let Err(error) = unsafe { queue.begin(file.fd(), whole, offset, number) } {
                self.refuse(&error, now);
                return Ok(());
            }
            self.pending.push_back(Pending {
                number,
                packets,
                result: None,
            });
        }
    }

    /// What is in the open segment goes to the disk, where the whole segment will overwrite it. A file whose time is over
    /// ends with that: the segment is to be closed as it is.
    fn flush(&mut self, now: Instant) -> Result<(), RingError> {
        let number = self.consumer.next_segment();
        let is_empty = |segment: Segment<'_>| segment.packets == 0;
        if self.consumer.segment(number)?.is_none_or(is_empty) {
            return Ok(());
        }
        if (self.file.is_none() || self.is_full(now)) && !self.begin_file(now) {
            return Ok(());
        }
        let (Some(segment), Some(file)) = (self.consumer.segment(number)?, &mut self.file) else {
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
        let age = self.file.as_ref().map(|file| now.duration_since(file.begun()));
        age.zip(self.policy.every).is_some_and(|(age, every)| age >= every)
    }

    /// Whether the file under way has all that it shall have. What it has a part of belongs to it.
    fn is_full(&self, now: Instant) -> bool {
        let Some(file) = &self.file else { return false };
        let segment = u64::from(self.ring.geometry().segment_len);
        let under_way = self.pending.len() as u64 * segment;
        let is_large = self
            .policy
            .size
            .is_some_and(|size| file.len() + under_way + segment > size.max(file.least() + segment));
        let has_part = self.pending.is_empty() && file.has_part();
        (is_large || self.is_old(now)) && !has_part && file.len() + under_way > file.least()
    }

    /// Ends the file under way and begins the next one; `false` if the disk refuses it.
    fn begin_file(&mut self, now: Instant) -> bool {
        self.end_file(&[]);
        let opened = self.open();
        if let Err(error) = &opened {
            self.refuse(error, now);
        }
        opened.is_ok()
    }

    fn open(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        let number = self.written.files + 1;
        let path = (self.policy.name)(number);
        let file = CaptureFile::create(&path, &self.preamble, self.policy.owner)?;
        self.written.cached += u64::from(!file.is_direct());
        self.file = Some(file);
        self.written.files = number;
        self.files.push_back(path);
        while self
            .policy
            .files
            .is_some_and(|most| self.files.len() > most.max(1))
        {
            match (self.files.pop_front(), &self.packer) {
                (Some(oldest), Some(packer)) => packer.remove(oldest),
                (Some(oldest), None) => drop(std::fs::remove_file(oldest)),
                (None, _) => {}
            }
        }
        Ok(())
    }

    fn end_file(&mut self, last: &[u8]) {
        let Some(file) = self.file.take() else { return };
        match file.end(last) {
            Ok(len) => {
                self.written.bytes += len;
                if let (Some(path), Some(packer)) = (self.files.back(), &self.packer) {
                    packer.pack(path);
                }
            }
            Err(error) => {
                self.written.error = Some(error.to_string());
                self.written.errors += 1;
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Writes under way end before what they are of goes.
        self.queue = None;
    }
}
