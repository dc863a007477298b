//! A consumer: reads packets by the worklist, and trusts nothing that it finds.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::RingError;
use crate::layout::{CONSUMER_MAGIC, Geometry, MAGIC, VERSION, consumer, header};
use crate::memory::{Memory, is_sealed};
use crate::pcapng::{ENTRY, PACKET_HEAD};
use crate::protocol::{self, Cursor, Look};

/// A packet where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'r> {
    /// Which of the interfaces it came from.
    pub interface: u32,
    /// When, ns since the epoch of Unix.
    pub time_ns: u64,
    /// Its length before it was cut.
    pub original_len: u32,
    /// Its bytes.
    pub data: &'r [u8],
    /// Its block of pcapng, whose options say more of it; empty where the ring is damaged.
    pub block: &'r [u8],
}

/// Packets of one segment that were committed together, or since the last look.
#[derive(Debug)]
pub struct Packets<'r> {
    /// The segment from its beginning on, as far as its blocks go.
    bytes: &'r [u8],
    /// The worklist's entries of these packets, the last one first.
    entries: &'r [u8],
}

impl<'r> Packets<'r> {
    /// How many.
    pub fn len(&self) -> usize {
        self.entries.len() / ENTRY
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// One after the other; a packet whose entry does not fit its segment is an error.
    pub fn iter(&self) -> impl Iterator<Item = Result<Packet<'r>, RingError>> + use<'r> {
        let bytes = self.bytes;
        self.entries
            .rchunks_exact(ENTRY)
            .map(move |entry| packet(bytes, entry))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn packet<'r>(bytes: &'r [u8], entry: &[u8]) -> Result<Packet<'r>, RingError> {
    let read = || {
        let (at, len) = (word(entry, 0)? as usize, word(entry, 4)? as usize);
        let begin = at.checked_sub(PACKET_HEAD)?;
        let head = bytes.get(begin..at)?;
        let block = bytes[begin..].get(..word(head, 4)? as usize);
        Some(Packet {
            block: block.unwrap_or_default(),
            interface: word(head, 8)?,
            time_ns: u64::from(word(head, 12)?) << 32 | u64::from(word(head, 16)?),
            original_len: word(head, 24)?,
            data: bytes.get(at..at.checked_add(len)?)?,
        })
    };
    read().ok_or(RingError::Damaged("a packet lies outside of its segment"))
}

/// A segment as it lies in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'r> {
    /// How many packets are in it so far.
    pub packets: usize,
    /// Their blocks, one after the other.
    pub blocks: &'r [u8],
    /// The entries of its worklist, the last one first.
    pub entries: &'r [u8],
    /// All of it, pcapng from end to end, once it is closed.
    pub whole: Option<&'r [u8]>,
}

impl<'r> Segment<'r> {
    /// Packet `index` of it, from 0.
    pub fn packet(&self, index: usize) -> Result<Packet<'r>, RingError> {
        let end = self.entries.len().checked_sub(index * ENTRY);
        let entry = end.and_then(|end| self.entries.get(end.checked_sub(ENTRY)?..end));
        let entry = entry.ok_or(RingError::Damaged("a segment has fewer packets than it says"))?;
        packet(self.blocks, entry)
    }
}

/// Reads a ring.
#[derive(Debug)]
pub struct Consumer {
    memory: Memory,
    page: Memory,
    geometry: Geometry,
    is_lossless: bool,
    cursor: Cursor,
    /// Of a lossy consumer: what was copied out of the segment, and its entries.
    copied: Vec<u8>,
    entries: Vec<u8>,
}

impl Consumer {
    /// The consumer of the ring in `ring` that has the seat of `page`.
    pub fn new(ring: impl AsFd, page: impl AsFd) -> Result<Self, RingError> {
        let (geometry, memory) = map(ring)?;
        // The seal first: a size that was read before it may have shrunk in between.
        let is_sealed = is_sealed(&page);
        let page_len = nix::sys::stat::fstat(&page).map_err(RingError::Memory)?.st_size;
        if !is_sealed || usize::try_from(page_len).unwrap_or(0) < consumer::LEN {
            return Err(RingError::NotARing("the consumer's page is none"));
        }
        let page = Memory::map(page, consumer::LEN, true).map_err(RingError::Memory)?;
        let mut magic = [0; 16];
        page.copy(0, &mut magic);
        if magic[..8] != CONSUMER_MAGIC {
            return Err(RingError::NotARing("the consumer's page does not begin as one"));
        }
        let is_lossless = word(&magic, 12) == Some(1);
        let mut this = Self {
            cursor: Cursor::new(geometry, &page, is_lossless),
            memory,
            page,
            geometry,
            is_lossless,
            copied: Vec::new(),
            entries: Vec::new(),
        };
        if !is_lossless {
            this.copied = vec![0; geometry.segment_len as usize];
            this.entries = vec![0; geometry.segment_len as usize / 4];
        }
        Ok(this)
    }

    /// The pcapng head of the ring: the section, and its interfaces.
    pub fn preamble(&self) -> Vec<u8> {
        let mut preamble = vec![0; self.geometry.preamble_len as usize];
        self.memory.copy(self.geometry.preamble_at(), &mut preamble);
        preamble
    }

    /// The sizes of the ring.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The number with this index that the producer tells besides packets.
    pub fn told(&self, index: usize) -> u64 {
        let at = header::TOLD + 8 * (index % header::TOLD_COUNT);
        self.memory.number(at).load(Acquire)
    }

    /// Whether the producer has ended: what [`Consumer::packets`] has not given by then never comes.
    pub fn is_ended(&self) -> bool {
        protocol::is_ended(&self.memory)
    }

    /// Packets taken, and such as were overwritten before.
    pub fn counts(&self) -> (u64, u64) {
        let number = |at| self.page.number(at).load(Relaxed);
        (number(consumer::TAKEN), number(consumer::LOST))
    }

    /// What came since the last call, up to the end of a segment; `None` if nothing. A lossless consumer gives back, with
    /// each call, whatever it got from those before.
    pub fn packets(&mut self) -> Result<Option<Packets<'_>>, RingError> {
        loop {
            let Some(look) = self.cursor.look(&self.memory, &self.page)? else {
                return Ok(None);
            };
            if self.is_lossless {
                self.cursor.took(&self.page, &look);
                return Ok(Some(self.in_place(&look)));
            }
            if self.copy(&look) {
                self.cursor.took(&self.page, &look);
                let entries = &self.entries[..look.new_packets() * ENTRY];
                return Ok(Some(Packets {
                    bytes: &self.copied[..look.bytes],
                    entries,
                }));
            }
        }
    }

    /// The first segment that was not given back.
    pub fn next_segment(&self) -> u64 {
        self.cursor.number()
    }

    /// Segment `number` (not given back yet) as it lies there, as far as it goes; `None` if it was not begun. Only for a
    /// lossless consumer. One whose place another has is an error: nobody may overwrite what was not given back.
    pub fn segment(&self, number: u64) -> Result<Option<Segment<'_>>, RingError> {
        let begun = protocol::begun(&self.memory);
        if !self.is_lossless || number < self.cursor.number() || number >= begun {
            return Ok(None);
        }
        let (is_closed, committed) = protocol::committed(&self.memory, &self.geometry, number);
        if !protocol::is_there(&self.memory, &self.geometry, number) {
            return Err(RingError::Damaged(protocol::OVERWRITTEN));
        }
        let (packets, bytes) = committed?;
        let len = self.geometry.segment_len as usize;
        // SAFETY: what is returned of it is committed, or closed, and this consumer has not released it: nobody writes that.
        let whole = unsafe { self.memory.bytes(self.geometry.segment_at(number), len) };
        Ok(Some(Segment {
            packets,
            blocks: &whole[..bytes],
            entries: &whole[len - 4 - packets * ENTRY..len - 4],
            whole: is_closed.then_some(whole),
        }))
    }

    /// The bytes of so many closed segments from `number` on, pcapng from end to end; `None` where one of them is not closed
    /// ([`Consumer::segment`]), or they do not lie back to back ([`Geometry::back_to_back`]).
    pub fn closed(&self, number: u64, segments: u64) -> Result<Option<&[u8]>, RingError> {
        if segments == 0 || segments > self.geometry.back_to_back(number) {
            return Ok(None);
        }
        for number in number..number + segments {
            if self
                .segment(number)?
                .is_none_or(|segment| segment.whole.is_none())
            {
                return Ok(None);
            }
        }
        let len = segments as usize * self.geometry.segment_len as usize;
        // SAFETY: all of them are closed, and this consumer has not released them: nobody writes that.
        let bytes = unsafe { self.memory.bytes(self.geometry.segment_at(number), len) };
        Ok(Some(bytes))
    }

    /// Gives back all segments up to `number`, of which these packets were taken.
    pub fn release(&mut self, number: u64, packets: u64) {
        self.cursor.release(&self.page, number, packets);
    }

    /// Where the entries of a segment of so many packets begin, that of the last one first.
    fn entries_at(&self, number: u64, to: usize) -> usize {
        self.geometry.segment_at(number) + self.geometry.segment_len as usize - 4 - to * ENTRY
    }

    fn in_place(&self, look: &Look) -> Packets<'_> {
        let len = look.new_packets() * ENTRY;
        // SAFETY: committed, and this consumer has not released the segment: the producer does not begin it anew.
        let (bytes, entries) = unsafe {
            (
                self.memory
                    .bytes(self.geometry.segment_at(look.number), look.bytes),
                self.memory.bytes(self.entries_at(look.number, look.packets), len),
            )
        };
        Packets { bytes, entries }
    }

    /// Copies what is new; `false` if it was overwritten meanwhile.
    fn copy(&mut self, look: &Look) -> bool {
        let len = look.new_packets() * ENTRY;
        let entries_at = self.entries_at(look.number, look.packets);
        // Words are read whole: the entries end 4 bytes before a word does.
        let begin = entries_at - entries_at % 8;
        let room = (len + entries_at - begin).next_multiple_of(8);
        if self.entries.len() < room {
            self.entries.resize(room, 0);
        }
        self.memory.copy(begin, &mut self.entries[..room]);
        self.entries
            .copy_within(entries_at - begin..entries_at - begin + len, 0);
        // Blocks that were not copied before.
        let from = match look.taken {
            0 => 0,
            _ => self.copied_to(look),
        };
        let segment = self.geometry.segment_at(look.number);
        self.memory
            .copy(segment + from, &mut self.copied[from..look.bytes]);
        protocol::is_there(&self.memory, &self.geometry, look.number)
    }

    /// Where the blocks begin that are new, rounded down to whole words: at the first new packet's head. An entry that points
    /// behind them may be another segment's by now; where it is this one's, the packet is found to lie outside when it is taken.
    fn copied_to(&self, look: &Look) -> usize {
        let last = (look.new_packets() - 1) * ENTRY;
        let at = word(&self.entries, last).unwrap_or(0) as usize;
        let begin = at.saturating_sub(PACKET_HEAD).min(look.bytes);
        begin - begin % 8
    }
}

/// Maps a ring to be read.
fn map(ring: impl AsFd) -> Result<(Geometry, Memory), RingError> {
    // Its end would take us with it; and a size that was read before the seal may have shrunk in between.
    if !is_sealed(&ring) {
        return Err(RingError::NotARing("its memory could shrink"));
    }
    let size = nix::sys::stat::fstat(&ring).map_err(RingError::Memory)?.st_size;
    let size = usize::try_from(size).map_err(|_| RingError::NotARing("it has no size"))?;
    if size < header::LEN {
        return Err(RingError::NotARing("it is shorter than a page"));
    }
    let memory = Memory::map(&ring, size, false).map_err(RingError::Memory)?;
    let mut head = [0; 64];
    memory.copy(0, &mut head);
    if head[..8] != MAGIC {
        return Err(RingError::NotARing("it does not begin as one"));
    }
    let number = |at| word(&head, at).unwrap_or(0);
    if number(header::VERSION) != VERSION {
        return Err(RingError::Version(number(header::VERSION)));
    }
    let geometry = Geometry {
        segments: number(header::SEGMENTS),
        segment_len: number(header::SEGMENT_LEN),
        preamble_len: number(header::PREAMBLE_LEN),
    };
    if !geometry.is_sound() {
        return Err(RingError::Geometry(geometry));
    }
    if geometry.len() > memory.len() {
        return Err(RingError::NotARing("it is shorter than its segments"));
    }
    Ok((geometry, memory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Producer;
    use crate::layout::SEGMENT_MIN;
    use crate::pcapng::{PacketHead, preamble};

    /// Its new entry points far behind the blocks that the reader saw.
    #[test]
    fn a_segment_begun_anew_while_it_is_copied_is_lost_and_no_damage() {
        let (mut producer, ring) = Producer::new(2, SEGMENT_MIN, &preamble("test", &[])).unwrap();
        let (_seat, page) = ring.seat(false).unwrap();
        let mut push = |len: usize| {
            let frame = vec![0; len];
            producer.push(&PacketHead::default(), len, [&frame[..]]).unwrap();
            producer.commit();
            producer.packets()
        };
        push(60);
        let mut consumer = Consumer::new(ring.file(), page).unwrap();
        let taken = consumer.packets().unwrap().unwrap().len() as u64;
        push(60);
        let look = consumer
            .cursor
            .look(&consumer.memory, &consumer.page)
            .unwrap()
            .unwrap();
        while ring.begun() < 3 {
            push(20_000);
        }
        let pushed = push(20_000);
        assert!(!consumer.copy(&look));
        let rest = consumer.packets().unwrap().unwrap();
        assert!(rest.iter().all(|packet| packet.unwrap().data.len() == 20_000));
        let there = rest.len() as u64;
        assert_eq!(consumer.counts(), (taken + there, pushed - taken - there));
    }
}
