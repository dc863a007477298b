//! The producer: writes packets back to back, and never waits for anybody.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};

use crossbeam_queue::ArrayQueue;

use crate::layout::{self, Geometry, MAGIC, VERSION, consumer, header};
use crate::memory::{Memory, seal_writing, shared};
use crate::pcapng::{self, ENTRY, PADDING_MIN, PacketHead, WORKLIST, WORKLIST_OVERHEAD};
use crate::{RingError, consumer_page, protocol};

/// The ring is full of what a lossless consumer still needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A consumer as the producer sees it.
#[derive(Debug)]
pub struct Seat {
    page: Memory,
    is_lossless: AtomicBool,
    is_taken: AtomicBool,
    /// See [`Seat::first`].
    first: AtomicU64,
}

impl Seat {
    /// Packets that it has taken, and such as were overwritten before it could.
    pub fn counts(&self) -> (u64, u64) {
        let number = |at| self.page.number(at).load(Acquire);
        (number(consumer::TAKEN), number(consumer::LOST))
    }

    /// Segments below this number it does not need any more.
    pub fn released(&self) -> u64 {
        self.page.number(consumer::RELEASED).load(Acquire)
    }

    /// The number of the first packet that it may take. Not its page's: that may say anything.
    pub fn first(&self) -> u64 {
        self.first.load(Acquire)
    }

    /// Whether the producer knows it: before, it may not read.
    pub fn is_taken(&self) -> bool {
        self.is_taken.load(Acquire)
    }

    /// The consumer is gone: nothing is kept for it.
    pub fn vacate(&self) {
        self.is_lossless.store(false, Release);
    }
}

/// What the producer and those who make room for consumers have in common.
#[derive(Debug)]
struct Shared {
    memory: Memory,
    geometry: Geometry,
    /// Consumers that the producer does not know yet.
    new: ArrayQueue<Arc<Seat>>,
    /// The producer has something to look at.
    asked: AtomicBool,
    /// The segment under way is to be closed.
    closes: AtomicBool,
}

/// A ring as others than its producer see it, in the same process.
#[derive(Clone, Debug)]
pub struct Ring {
    shared: Arc<Shared>,
    file: Arc<OwnedFd>,
}

impl Ring {
    /// The ring's memory, to be handed to consumers: they cannot map it to be written.
    pub fn file(&self) -> BorrowedFd<'_> {
        (*self.file).as_fd()
    }

    /// Makes a seat for a consumer, and the page that is handed to it. It gets all packets from the moment on at which
    /// [`Seat::is_taken`]; before, or where the producer is gone, it may not read.
    pub fn seat(&self, is_lossless: bool) -> Result<(Arc<Seat>, OwnedFd), RingError> {
        let (file, page) = consumer_page(is_lossless).map_err(RingError::Memory)?;
        let seat = Arc::new(Seat {
            page,
            is_lossless: AtomicBool::new(is_lossless),
            is_taken: AtomicBool::new(false),
            first: AtomicU64::new(0),
        });
        self.shared
            .new
            .push(Arc::clone(&seat))
            .map_err(|_| RingError::Crowded)?;
        self.shared.asked.store(true, Release);
        Ok((seat, file))
    }

    /// Has the producer close the segment under way at its next commit.
    pub fn close_segment(&self) {
        self.shared.closes.store(true, Relaxed);
        self.shared.asked.store(true, Release);
    }

    /// Segments begun.
    pub fn begun(&self) -> u64 {
        protocol::begun(&self.shared.memory)
    }

    /// The number of the oldest packet that is still there: those before it were overwritten.
    pub fn oldest(&self) -> u64 {
        protocol::oldest(&self.shared.memory, &self.shared.geometry)
    }

    /// The sizes.
    pub fn geometry(&self) -> Geometry {
        self.shared.geometry
    }
}

/// The segment under way.
#[derive(Clone, Copy, Debug)]
struct Open {
    number: u64,
    at: usize,
    /// Bytes of blocks of packets, and how many those are.
    bytes: usize,
    packets: u32,
}

/// Consumers that the producer may be told of at once.
const NEW_MAX: usize = 64;
/// Lossless consumers at most: the producer asks each of them before it begins a segment.
const SEATS_MAX: usize = 256;

/// Writes a ring.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    open: Option<Open>,
    next: u64,
    packets: u64,
    seats: Vec<Arc<Seat>>,
}

impl Producer {
    /// A ring of `segments` of `segment_len` bytes each (a multiple of 4096), for packets of the interfaces that
    /// `preamble` tells of.
    pub fn new(segments: u32, segment_len: u32, preamble: &[u8]) -> Result<(Self, Ring), RingError> {
        let geometry = Geometry {
            segments,
            segment_len,
            preamble_len: preamble.len() as u32,
        };
        if !geometry.is_sound() {
            return Err(RingError::Geometry(geometry));
        }
        let file = shared("dropless-ring", geometry.len()).map_err(RingError::Memory)?;
        let memory = Memory::map(&file, geometry.len(), true).map_err(RingError::Memory)?;
        seal_writing(&file).map_err(RingError::Memory)?;
        // SAFETY: nobody knows the memory yet.
        let (start, room) = unsafe {
            (
                memory.room(0, MAGIC.len()),
                memory.room(geometry.preamble_at(), preamble.len()),
            )
        };
        start.copy_from_slice(&MAGIC);
        room.copy_from_slice(preamble);
        for (at, value) in [
            (header::VERSION, VERSION),
            (header::SEGMENTS, segments),
            (header::SEGMENT_LEN, segment_len),
            (header::PREAMBLE_LEN, geometry.preamble_len),
            (header::PRODUCER, std::process::id()),
        ] {
            memory.put(at, value);
        }
        // Every page is there before the first packet.
        for number in 0..u64::from(segments) {
            // SAFETY: as above.
            unsafe { memory.room(geometry.segment_at(number), segment_len as usize) }.fill(0);
        }
        let shared = Arc::new(Shared {
            memory,
            geometry,
            new: ArrayQueue::new(NEW_MAX),
            asked: AtomicBool::new(false),
            closes: AtomicBool::new(false),
        });
        let producer = Self {
            shared: Arc::clone(&shared),
            open: None,
            next: 0,
            packets: 0,
            seats: Vec::with_capacity(SEATS_MAX),
        };
        let file = Arc::new(file);
        Ok((producer, Ring { shared, file }))
    }

    /// What others asked for since the last look.
    #[cold]
    fn look(&mut self) {
        self.shared.asked.store(false, Relaxed);
        fence(Acquire);
        // Nothing is kept for those that are gone.
        self.seats.retain(|seat| seat.is_lossless.load(Relaxed));
        while self.seats.len() < SEATS_MAX {
            let Some(seat) = self.shared.new.pop() else { break };
            // It begins with the segment under way: what is in that already it gets, too.
            let (segment, before) = match self.open {
                Some(open) => (open.number, u64::from(open.packets)),
                None => (self.next, 0),
            };
            let first = self.packets - before;
            seat.first.store(first, Relaxed);
            seat.page.number(consumer::FIRST).store(first, Relaxed);
            seat.page.number(consumer::RELEASED).store(segment, Relaxed);
            seat.is_taken.store(true, Release);
            if seat.is_lossless.load(Relaxed) {
                self.seats.push(seat);
            }
        }
        if self.shared.closes.swap(false, Relaxed) {
            self.close();
        }
    }

    /// Bytes of a segment.
    #[inline]
    pub fn segment_len(&self) -> usize {
        self.shared.geometry.segment_len as usize
    }

    /// Packets written.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Appends a packet of these `parts`, `captured` bytes together. It can be read after the next
    /// [`Producer::commit`].
    #[inline]
    pub fn push<'p>(
        &mut self,
        head: &PacketHead,
        captured: usize,
        parts: impl IntoIterator<Item = &'p [u8]>,
    ) -> Result<(), Full> {
        let len = head.block_len(captured);
        let open = match self.open {
            Some(open) if self.fits(&open, len) => open,
            _ => self.turn_over(len)?,
        };
        let entry_at =
            open.at + self.shared.geometry.segment_len as usize - 4 - ENTRY * (open.packets as usize + 1);
        // SAFETY: behind what is committed of the open segment, and before its worklist.
        let room = unsafe { self.shared.memory.room(open.at + open.bytes, len) };
        head.write(room, captured, parts);
        // SAFETY: the entry is not committed, and does not reach the block, which fits.
        let entry = unsafe { self.shared.memory.room(entry_at, ENTRY) };
        entry[..4].copy_from_slice(&((open.bytes + pcapng::PACKET_HEAD) as u32).to_ne_bytes());
        entry[4..].copy_from_slice(&(captured as u32).to_ne_bytes());
        self.open = Some(Open {
            bytes: open.bytes + len,
            packets: open.packets + 1,
            ..open
        });
        self.packets += 1;
        Ok(())
    }

    /// Has place for `packets` packets, whose blocks are `len` bytes together, in one segment: [`Producer::withdraw`] can
    /// take all of them back.
    #[inline]
    pub fn reserve(&mut self, packets: usize, len: usize) -> Result<(), Full> {
        let len = len + ENTRY * packets;
        match self.open {
            Some(open) if self.fits(&open, len) => Ok(()),
            _ => self.turn_over(len).map(drop),
        }
    }

    /// Takes the last `count` packets back: they were written into room that was reserved, and not committed.
    #[inline]
    pub fn withdraw(&mut self, count: usize) {
        let Some(open) = self.open.as_mut().filter(|open| open.packets as usize >= count) else {
            return;
        };
        if count == 0 {
            return;
        }
        open.packets -= count as u32;
        self.packets -= count as u64;
        let entries_end = open.at + self.shared.geometry.segment_len as usize - 4;
        let entry_at = entries_end - ENTRY * (open.packets as usize + 1);
        // SAFETY: the entry of the first of them, which is not committed: nobody reads or writes it.
        let entry = unsafe { self.shared.memory.room(entry_at, ENTRY) };
        let data_at = u32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]);
        open.bytes = data_at as usize - pcapng::PACKET_HEAD;
    }

    /// Tells consumers a number besides packets, the one with this index.
    #[inline]
    pub fn tell(&self, index: usize, value: u64) {
        let at = header::TOLD + 8 * (index % header::TOLD_COUNT);
        self.shared.memory.number(at).store(value, Release);
    }

    /// Lets consumers read what was written.
    #[inline]
    pub fn commit(&mut self) {
        self.publish();
        if self.shared.asked.load(Relaxed) {
            self.look();
        }
    }

    #[inline]
    fn publish(&self) {
        if let Some(open) = self.open {
            let (memory, geometry) = (&self.shared.memory, &self.shared.geometry);
            protocol::commit(memory, geometry, open.number, (open.packets, open.bytes));
        }
    }

    /// Closes the last segment: no packet comes any more.
    pub fn end(&mut self) {
        self.commit();
        self.close();
        protocol::end(&self.shared.memory);
    }

    #[inline]
    fn fits(&self, open: &Open, len: usize) -> bool {
        let worklist = WORKLIST_OVERHEAD + ENTRY * (open.packets as usize + 1);
        open.bytes + len + PADDING_MIN + worklist <= self.shared.geometry.segment_len as usize
    }

    /// Closes the segment under way and begins the next one, in which a block of `len` bytes has place.
    #[cold]
    fn turn_over(&mut self, len: usize) -> Result<Open, Full> {
        self.close();
        let number = self.next;
        let (memory, geometry) = (&self.shared.memory, &self.shared.geometry);
        let needs = |seat: &Arc<Seat>| {
            seat.is_lossless.load(Acquire) && protocol::is_held(seat.released(), geometry, number)
        };
        if self.seats.iter().any(needs) {
            return Err(Full);
        }
        let open = Open {
            number,
            at: self.shared.geometry.segment_at(number),
            bytes: 0,
            packets: 0,
        };
        if !self.fits(&open, len) {
            return Err(Full);
        }
        protocol::begin(memory, geometry, number, self.packets);
        self.next += 1;
        self.open = Some(open);
        Ok(open)
    }

    /// Makes the segment under way pcapng from end to end.
    fn close(&mut self) {
        self.publish();
        let Some(open) = self.open.take() else { return };
        let whole = self.shared.geometry.segment_len as usize;
        let worklist = WORKLIST_OVERHEAD + ENTRY * open.packets as usize;
        let worklist_at = whole - worklist;
        // SAFETY: between what is committed and the worklist's entries.
        let gap = unsafe {
            self.shared
                .memory
                .room(open.at + open.bytes, worklist_at - open.bytes)
        };
        pcapng::fill(gap);
        // SAFETY: as above, and before the entries.
        let head = unsafe { self.shared.memory.room(open.at + worklist_at, 16) };
        let words = [pcapng::LOCAL, worklist as u32, WORKLIST, open.packets];
        for (to, word) in head.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        // SAFETY: the last word of the segment, behind the entries.
        let end = unsafe { self.shared.memory.room(open.at + whole - 4, 4) };
        end.copy_from_slice(&(worklist as u32).to_ne_bytes());
        protocol::close(&self.shared.memory, &self.shared.geometry, open.number);
    }
}

/// The longest packet that a segment of this length takes, with any options.
pub const fn longest_packet(segment_len: u32) -> usize {
    segment_len as usize - WORKLIST_OVERHEAD - ENTRY - PADDING_MIN - pcapng::PACKET_HEAD - 4 - 32 - 4
}

const _: () = assert!(longest_packet(layout::SEGMENT_MIN) > 65_535);
