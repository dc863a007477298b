//! A consumer: reads packets by the worklist, and trusts nothing that it finds.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use crate::RingError;
use crate::layout::{CONSUMER_MAGIC, Geometry, MAGIC, VERSION, consumer, header, slot};
use crate::memory::Memory;
use crate::pcapng::{ENTRY, PACKET_HEAD};

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
        let head = bytes.get(at.checked_sub(PACKET_HEAD)?..at)?;
        Some(Packet {
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

/// What was there at one look.
struct Look {
    /// The segment's number.
    number: u64,
    /// Packets of it that were taken before.
    taken: usize,
    packets: usize,
    bytes: usize,
}

/// Reads a ring.
#[derive(Debug)]
pub struct Consumer {
    memory: Memory,
    page: Memory,
    geometry: Geometry,
    is_lossless: bool,
    /// The segment that is read, and how many of its packets are done.
    number: u64,
    done: usize,
    /// The number of the next packet among all of the ring.
    next: u64,
    /// Of a lossy consumer: what was copied out of the segment, and its entries.
    copied: Vec<u8>,
    entries: Vec<u8>,
}

impl Consumer {
    /// The consumer of the ring in `ring` that has the seat of `page`.
    pub fn new(ring: impl AsFd, page: impl AsFd) -> Result<Self, RingError> {
        let (geometry, memory) = map(ring)?;
        let page = Memory::map(page, consumer::LEN, true).map_err(RingError::Memory)?;
        let mut magic = [0; 16];
        page.copy(0, &mut magic);
        if magic[..8] != CONSUMER_MAGIC {
            return Err(RingError::NotARing("the consumer's page does not begin as one"));
        }
        let is_lossless = word(&magic, 12) == Some(1);
        let number = page.number(consumer::RELEASED).load(Acquire);
        let next = page.number(consumer::FIRST).load(Acquire);
        let mut this = Self {
            memory,
            page,
            geometry,
            is_lossless,
            number,
            done: 0,
            next,
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
        self.memory.number(header::ENDED).load(Acquire) == 1
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
            let Some(look) = self.look()? else { return Ok(None) };
            let new = look.packets - look.taken;
            if self.is_lossless {
                self.took(new);
                return Ok(Some(self.in_place(&look)));
            }
            if self.copy(&look)? {
                self.took(new);
                let first = look.taken;
                let entries = &self.entries[..(look.packets - first) * ENTRY];
                return Ok(Some(Packets {
                    bytes: &self.copied[..look.bytes],
                    entries,
                }));
            }
        }
    }

    /// The first segment that was not given back.
    pub fn next_segment(&self) -> u64 {
        self.number
    }

    /// Segment `number` (not given back yet) as it lies there, as far as it goes; `None` if it was not begun. Only for a
    /// lossless consumer.
    pub fn segment(&self, number: u64) -> Result<Option<Segment<'_>>, RingError> {
        let begun = self.memory.number(header::BEGUN).load(Acquire);
        if !self.is_lossless || number < self.number || number >= begun {
            return Ok(None);
        }
        let is_closed = self.field(number, slot::CLOSED) > 0;
        let (packets, bytes) = self.committed(number)?;
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

    /// Gives back all segments up to `number`, of which these packets were taken.
    pub fn release(&mut self, number: u64, packets: u64) {
        self.page.number(consumer::TAKEN).fetch_add(packets, Relaxed);
        self.go_to(number + 1);
    }

    /// Packets and bytes of a segment that may be read.
    fn committed(&self, number: u64) -> Result<(usize, usize), RingError> {
        let committed = self.field(number, slot::COMMITTED);
        let (packets, bytes) = ((committed >> 32) as usize, (committed & 0xFFFF_FFFF) as usize);
        let fits = packets
            .checked_mul(ENTRY)
            .and_then(|entries| entries.checked_add(bytes))
            .is_some_and(|len| len + 4 <= self.geometry.segment_len as usize);
        if fits {
            Ok((packets, bytes))
        } else {
            Err(RingError::Damaged("a segment has more than it can hold"))
        }
    }

    fn took(&mut self, count: usize) {
        self.done += count;
        self.next += count as u64;
        self.page.number(consumer::TAKEN).fetch_add(count as u64, Relaxed);
    }

    fn field(&self, number: u64, field: usize) -> u64 {
        self.memory
            .number(self.geometry.slot_at(number) + field)
            .load(Acquire)
    }

    /// The number of the first packet of a segment, if it is there.
    fn first_of(&self, number: u64) -> Option<u64> {
        let first = self.field(number, slot::FIRST);
        fence(Acquire);
        (self.field(number, slot::NUMBER) == number + 1).then_some(first)
    }

    /// Goes on to the next segment where this one is done, and says what is new; skips what was overwritten.
    fn look(&mut self) -> Result<Option<Look>, RingError> {
        loop {
            let begun = self.memory.number(header::BEGUN).load(Acquire);
            if self.number >= begun {
                return Ok(None);
            }
            // What is committed first: it is complete if the segment is closed by then.
            let closed = self.field(self.number, slot::CLOSED) > 0;
            let committed = self.committed(self.number);
            fence(Acquire);
            if self.field(self.number, slot::NUMBER) != self.number + 1 {
                if self.is_lossless {
                    return Err(RingError::Damaged(
                        "a segment was overwritten that was not released",
                    ));
                }
                self.skip(begun)?;
                continue;
            }
            let (packets, bytes) = committed?;
            if packets < self.done {
                return Err(RingError::Damaged("a segment has fewer packets than before"));
            }
            if packets > self.done {
                return Ok(Some(Look {
                    number: self.number,
                    taken: self.done,
                    packets,
                    bytes,
                }));
            }
            if !closed {
                return Ok(None);
            }
            self.go_to(self.number + 1);
        }
    }

    fn go_to(&mut self, number: u64) {
        self.number = number;
        self.done = 0;
        self.page.number(consumer::RELEASED).store(number, Release);
    }

    /// Goes to a segment that will not be overwritten at once; what lies between is lost.
    fn skip(&mut self, begun: u64) -> Result<(), RingError> {
        let margin = u64::from(self.geometry.segments / 2);
        let oldest = begun.saturating_sub(margin).max(self.number + 1);
        let there = (oldest..begun).find_map(|number| Some((number, self.first_of(number)?)));
        let Some((number, first)) = there else {
            // The newest one is always there, unless it is the newest no more.
            let is_newer = self.memory.number(header::BEGUN).load(Acquire) > begun;
            return is_newer
                .then_some(())
                .ok_or(RingError::Damaged("its newest segment is not there"));
        };
        let lost = first.saturating_sub(self.next);
        self.page.number(consumer::LOST).fetch_add(lost, Relaxed);
        self.next = first;
        self.go_to(number);
        Ok(())
    }

    /// Where the entries of packets `from` to `to` lie in a segment, the last one first.
    fn entries_at(&self, number: u64, to: usize) -> usize {
        self.geometry.segment_at(number) + self.geometry.segment_len as usize - 4 - to * ENTRY
    }

    fn in_place(&self, look: &Look) -> Packets<'_> {
        let len = (look.packets - look.taken) * ENTRY;
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
    fn copy(&mut self, look: &Look) -> Result<bool, RingError> {
        let len = (look.packets - look.taken) * ENTRY;
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
            _ => self.copied_to(look)?,
        };
        let segment = self.geometry.segment_at(look.number);
        self.memory
            .copy(segment + from, &mut self.copied[from..look.bytes]);
        fence(Acquire);
        Ok(self.field(look.number, slot::NUMBER) == look.number + 1)
    }

    /// Where the blocks begin that are new, rounded down to whole words: at the first new packet's head.
    fn copied_to(&self, look: &Look) -> Result<usize, RingError> {
        let last = (look.packets - look.taken - 1) * ENTRY;
        let at = word(&self.entries, last).unwrap_or(0) as usize;
        let begin = at.saturating_sub(PACKET_HEAD);
        if begin > look.bytes {
            return Err(RingError::Damaged("a packet lies outside of its segment"));
        }
        Ok(begin - begin % 8)
    }
}

/// Maps a ring to be read.
fn map(ring: impl AsFd) -> Result<(Geometry, Memory), RingError> {
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
