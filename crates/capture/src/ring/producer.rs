//! The producer: writes packets back to back, and never waits for anybody.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use super::layout::{self, Geometry, MAGIC, VERSION, consumer, header, slot};
use super::memory::{Memory, seal_writing, shared};
use super::{RingError, consumer_page};
use crate::pcapng::{self, ENTRY, PADDING_MIN, PacketHead, WORKLIST, WORKLIST_OVERHEAD};

/// The ring is full of what a lossless consumer still needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A consumer as the producer sees it.
#[derive(Debug)]
pub struct Seat {
    page: Memory,
    is_lossless: bool,
}

impl Seat {
    /// Packets that it has taken, and such as were overwritten before it could.
    pub fn counts(&self) -> (u64, u64) {
        let number = |at| self.page.number(at).load(Acquire);
        (number(consumer::TAKEN), number(consumer::LOST))
    }

    /// Segments that it does not need any more.
    pub fn released(&self) -> u64 {
        self.page.number(consumer::RELEASED).load(Acquire)
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

/// Writes a ring.
#[derive(Debug)]
pub struct Producer {
    file: OwnedFd,
    memory: Memory,
    geometry: Geometry,
    open: Option<Open>,
    next: u64,
    packets: u64,
    seats: Vec<Seat>,
}

impl Producer {
    /// A ring of `segments` of `segment_len` bytes each (a multiple of 4096), for packets of the interfaces that
    /// `preamble` tells of.
    pub fn new(segments: u32, segment_len: u32, preamble: &[u8]) -> Result<Self, RingError> {
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
        Ok(Self {
            file,
            memory,
            geometry,
            open: None,
            next: 0,
            packets: 0,
            seats: Vec::new(),
        })
    }

    /// The ring's memory, to be handed to consumers: they cannot map it to be written.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Makes a seat for a consumer that gets all packets from now on, and the page that is handed to it.
    pub fn seat(&mut self, is_lossless: bool) -> Result<(usize, OwnedFd), RingError> {
        let (file, page) = consumer_page(is_lossless).map_err(RingError::Memory)?;
        // It begins with the segment under way: what is in that already it gets, too.
        let (segment, before) = match self.open {
            Some(open) => (open.number, u64::from(open.packets)),
            None => (self.next, 0),
        };
        page.number(consumer::FIRST).store(self.packets - before, Release);
        page.number(consumer::RELEASED).store(segment, Release);
        self.seats.push(Seat { page, is_lossless });
        Ok((self.seats.len() - 1, file))
    }

    /// The consumer of this seat is gone: nothing is kept for it.
    pub fn vacate(&mut self, seat: usize) {
        if let Some(seat) = self.seats.get_mut(seat) {
            seat.is_lossless = false;
        }
    }

    /// The consumers, in the order in which they came.
    pub fn seats(&self) -> &[Seat] {
        &self.seats
    }

    /// Segments begun.
    pub fn begun(&self) -> u64 {
        self.next
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
        let entry_at = open.at + self.geometry.segment_len as usize - 4 - ENTRY * (open.packets as usize + 1);
        // SAFETY: behind what is committed of the open segment, and before its worklist.
        let room = unsafe { self.memory.room(open.at + open.bytes, len) };
        head.write(room, captured, parts);
        // SAFETY: the entry is not committed, and does not reach the block, which fits.
        let entry = unsafe { self.memory.room(entry_at, ENTRY) };
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

    /// Lets consumers read what was written.
    #[inline]
    pub fn commit(&mut self) {
        if let Some(open) = self.open {
            let committed = u64::from(open.packets) << 32 | open.bytes as u64;
            let at = self.geometry.slot_at(open.number);
            self.memory.number(at + slot::COMMITTED).store(committed, Release);
        }
    }

    /// Closes the last segment: no packet comes any more.
    pub fn end(&mut self) {
        self.close();
        self.memory.number(header::ENDED).store(1, Release);
    }

    #[inline]
    fn fits(&self, open: &Open, len: usize) -> bool {
        let worklist = WORKLIST_OVERHEAD + ENTRY * (open.packets as usize + 1);
        open.bytes + len + PADDING_MIN + worklist <= self.geometry.segment_len as usize
    }

    /// Closes the segment under way and begins the next one, in which a block of `len` bytes has place.
    #[cold]
    fn turn_over(&mut self, len: usize) -> Result<Open, Full> {
        self.close();
        let number = self.next;
        let needed = |seat: &Seat| seat.is_lossless && seat.released() + u64::from(self.geometry.segments) <= number;
        if self.seats.iter().any(needed) {
            return Err(Full);
        }
        let open = Open {
            number,
            at: self.geometry.segment_at(number),
            bytes: 0,
            packets: 0,
        };
        if !self.fits(&open, len) {
            return Err(Full);
        }
        let at = self.geometry.slot_at(number);
        let field = |field: usize| self.memory.number(at + field);
        // Who reads the one before without a gate sees that it is gone before any of its bytes change.
        field(slot::NUMBER).store(0, Relaxed);
        fence(Release);
        field(slot::COMMITTED).store(0, Relaxed);
        field(slot::CLOSED).store(0, Relaxed);
        field(slot::FIRST).store(self.packets, Relaxed);
        field(slot::NUMBER).store(number + 1, Release);
        self.memory.number(header::BEGUN).store(number + 1, Release);
        self.next += 1;
        self.open = Some(open);
        Ok(open)
    }

    /// Makes the segment under way pcapng from end to end.
    fn close(&mut self) {
        self.commit();
        let Some(open) = self.open.take() else { return };
        let whole = self.geometry.segment_len as usize;
        let worklist = WORKLIST_OVERHEAD + ENTRY * open.packets as usize;
        let worklist_at = whole - worklist;
        // SAFETY: between what is committed and the worklist's entries.
        let gap = unsafe { self.memory.room(open.at + open.bytes, worklist_at - open.bytes) };
        pcapng::fill(gap);
        // SAFETY: as above, and before the entries.
        let head = unsafe { self.memory.room(open.at + worklist_at, 16) };
        let words = [pcapng::LOCAL, worklist as u32, WORKLIST, open.packets];
        for (to, word) in head.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        // SAFETY: the last word of the segment, behind the entries.
        let end = unsafe { self.memory.room(open.at + whole - 4, 4) };
        end.copy_from_slice(&(worklist as u32).to_ne_bytes());
        let at = self.geometry.slot_at(open.number);
        self.memory.number(at + slot::CLOSED).store(whole as u64, Release);
    }
}

/// The longest packet that a segment of this length takes, with any options.
pub const fn longest_packet(segment_len: u32) -> usize {
    segment_len as usize - WORKLIST_OVERHEAD - ENTRY - PADDING_MIN - pcapng::PACKET_HEAD - 4 - 32 - 4
}

const _: () = assert!(longest_packet(layout::SEGMENT_MIN) > 65_535);
