//! Writing pcapng (draft-ietf-opsawg-pcapng) in the byte order of this machine: header, interfaces, packets, statistics.
//!
//! Times are nanoseconds since the epoch of Unix. Blocks of local use (type `0x8000_0BAD`) pad, and index packets; other
//! programs skip them.

/// Sizes on disk are multiples of this: what `O_DIRECT` asks for.
pub const ALIGN: usize = 4096;

/// The block that begins a section.
pub const SECTION_HEADER: u32 = 0x0A0D_0D0A;
/// The block that describes an interface.
pub const INTERFACE: u32 = 1;
/// The block that says what an interface counted.
pub const STATISTICS: u32 = 5;
/// The block of a packet.
pub const ENHANCED_PACKET: u32 = 6;
/// Block of local use: what it is stands in its first word.
pub const LOCAL: u32 = 0x8000_0BAD;
/// A block of local use that only fills a gap.
pub const PADDING: u32 = u32::from_le_bytes(*b"DPAD");
/// A block of local use that says where packets are.
pub const WORKLIST: u32 = u32::from_le_bytes(*b"DIDX");

/// Bytes of the longest filter that a file can tell: a length has 16 bits, and one byte says what kind of filter it is.
pub const FILTER_MAX: usize = u16::MAX as usize - 1;
/// The shortest block of padding.
pub const PADDING_MIN: usize = 16;
/// Bytes of a packet's block before its data.
pub const PACKET_HEAD: usize = 28;
/// Bytes of an entry of a worklist: where a packet's data begin in the segment, and how many there are.
pub const ENTRY: usize = 8;
/// Bytes of a worklist's block besides its entries.
pub const WORKLIST_OVERHEAD: usize = 20;

/// An interface as it is described in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name: the port's URI.
    pub name: String,
    /// What stamps its packets, and whatever else there is to say.
    pub description: String,
    /// Its MAC address.
    pub mac: Option<[u8; 6]>,
    /// Bits per second.
    pub speed: Option<u64>,
    /// Bytes kept of each packet, at most; 0 is all.
    pub snap_len: u32,
    /// The filter that its packets passed; one of more than [`FILTER_MAX`] bytes is left out.
    pub filter: Option<String>,
}

/// What an interface counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// When it began and ended, ns.
    pub from_ns: u64,
    /// See `from_ns`.
    pub to_ns: u64,
    /// Packets received.
    pub received: u64,
    /// Packets that the interface itself dropped: nobody else saw them.
    pub interface_dropped: u64,
    /// Packets that passed the filter.
    pub accepted: u64,
    /// Packets that were dropped after that.
    pub dropped: u64,
    /// Packets that were delivered.
    pub delivered: u64,
}

/// Which way a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It was received.
    In,
    /// It was sent.
    Out,
}

/// What is told of a packet besides its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketHead {
    /// Which of the interfaces, from 0.
    pub interface: u32,
    /// When.
    pub time_ns: u64,
    /// Its length before it was cut.
    pub original_len: u32,
    /// Its queue, where there are several.
    pub queue: Option<u32>,
    /// Which way it went, where that is not plain.
    pub direction: Option<Direction>,
    /// Packets of this interface lost since the one before, where any were.
    pub dropped: u64,
}

impl PacketHead {
    /// Bytes of the block of a packet of which `captured` bytes are kept.
    #[inline]
    pub fn block_len(&self, captured: usize) -> usize {
        PACKET_HEAD + captured.next_multiple_of(4) + self.options_len() + 4
    }

    #[inline]
    fn options_len(&self) -> usize {
        let options = 8 * usize::from(self.queue.is_some())
            + 8 * usize::from(self.direction.is_some())
            + 12 * usize::from(self.dropped > 0);
        // The end of the options is one, too.
        if options > 0 { options + 4 } else { 0 }
    }

    /// Writes the block of a packet of these `parts` to the beginning of `room`, which has place for it
    /// ([`PacketHead::block_len`]). Returns its length.
    #[inline]
    pub fn write<'p>(
        &self,
        room: &mut [u8],
        captured: usize,
        parts: impl IntoIterator<Item = &'p [u8]>,
    ) -> usize {
        let len = self.block_len(captured);
        let room = &mut room[..len];
        let mut head = [0; PACKET_HEAD];
        let words = [
            ENHANCED_PACKET,
            len as u32,
            self.interface,
            (self.time_ns >> 32) as u32,
            self.time_ns as u32,
            captured as u32,
            self.original_len,
        ];
        for (to, word) in head.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        room[..PACKET_HEAD].copy_from_slice(&head);
        let mut at = PACKET_HEAD;
        for part in parts {
            room[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        let data_end = PACKET_HEAD + captured.next_multiple_of(4);
        room[at..data_end].fill(0);
        if self.options_len() > 0 {
            self.write_options(&mut room[data_end..len - 4]);
        }
        room[len - 4..].copy_from_slice(&(len as u32).to_ne_bytes());
        len
    }

    /// The block of a packet with a comment for people, for streams that are not in a hurry.
    pub fn commented(&self, data: &[u8], comment: &str) -> Vec<u8> {
        let mut body = Vec::new();
        let words = [
            self.interface,
            (self.time_ns >> 32) as u32,
            self.time_ns as u32,
            data.len() as u32,
            self.original_len,
        ];
        body.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        body.extend(data);
        body.resize(body.len().next_multiple_of(4), 0);
        let mut further = vec![0; self.options_len()];
        if !further.is_empty() {
            self.write_options(&mut further);
        }
        let mut options = Options::default();
        options.put_text(1, comment);
        // The end of the options comes once, and last.
        options
            .0
            .extend(further.iter().take(further.len().saturating_sub(4)));
        body.extend(options.end());
        block(ENHANCED_PACKET, &body)
    }

    /// Writes the options to `room`, which is as long as they are.
    #[inline]
    fn write_options(&self, room: &mut [u8]) {
        let mut at = 0;
        let mut put = |code: u16, value: &[u8]| {
            room[at..at + 2].copy_from_slice(&code.to_ne_bytes());
            room[at + 2..at + 4].copy_from_slice(&(value.len() as u16).to_ne_bytes());
            room[at + 4..at + 4 + value.len()].copy_from_slice(value);
            at += 4 + value.len();
        };
        if let Some(direction) = self.direction {
            let flags: u32 = match direction {
                Direction::In => 1,
                Direction::Out => 2,
            };
            put(2, &flags.to_ne_bytes());
        }
        if self.dropped > 0 {
            put(4, &self.dropped.to_ne_bytes());
        }
        if let Some(queue) = self.queue {
            put(6, &queue.to_ne_bytes());
        }
        // The end of the options.
        room[at..].fill(0);
    }
}

/// Options of a block.
#[derive(Default)]
struct Options(Vec<u8>);

impl Options {
    fn put(&mut self, code: u16, value: &[u8]) {
        self.0.extend(code.to_ne_bytes());
        self.0.extend((value.len() as u16).to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn put_text(&mut self, code: u16, text: &str) {
        // A length has 16 bits; nothing that we say is as long.
        let text: String = text.chars().take(1024).collect();
        if !text.is_empty() {
            self.put(code, text.as_bytes());
        }
    }

    fn end(mut self) -> Vec<u8> {
        if !self.0.is_empty() {
            self.0.extend([0; 4]);
        }
        self.0
    }
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (body.len().next_multiple_of(4) + 12) as u32;
    let mut block = Vec::with_capacity(len as usize);
    block.extend(kind.to_ne_bytes());
    block.extend(len.to_ne_bytes());
    block.extend(body);
    block.resize(len as usize - 4, 0);
    block.extend(len.to_ne_bytes());
    block
}

/// The head of a file or stream: the section, and its interfaces, filled up to a multiple of [`ALIGN`].
pub fn preamble(application: &str, interfaces: &[Interface]) -> Vec<u8> {
    let mut options = Options::default();
    options.put_text(3, std::env::consts::OS);
    options.put_text(4, application);
    let mut body = Vec::new();
    body.extend(0x1A2B_3C4D_u32.to_ne_bytes());
    body.extend(1_u16.to_ne_bytes());
    body.extend(0_u16.to_ne_bytes());
    // The section's length is not known.
    body.extend((-1_i64).to_ne_bytes());
    body.extend(options.end());
    let mut all = block(SECTION_HEADER, &body);
    for interface in interfaces {
        all.extend(interface.block());
    }
    let gap = gap_to_fill(all.len(), ALIGN);
    let end = all.len() + gap;
    let begin = all.len();
    all.resize(end, 0);
    fill(&mut all[begin..]);
    all
}

impl Interface {
    fn block(&self) -> Vec<u8> {
        let mut options = Options::default();
        options.put_text(2, &self.name);
        options.put_text(3, &self.description);
        if let Some(mac) = self.mac {
            options.put(6, &mac);
        }
        if let Some(speed) = self.speed {
            options.put(8, &speed.to_ne_bytes());
        }
        // Nanoseconds: 10^-9 s.
        options.put(9, &[9]);
        // A part of one would be another filter.
        if let Some(filter) = self.filter.as_deref().filter(|filter| filter.len() <= FILTER_MAX) {
            // A filter string of libpcap.
            options.put(11, &[b"\0", filter.as_bytes()].concat());
        }
        let mut body = Vec::new();
        // LINKTYPE_ETHERNET, and a reserved field.
        body.extend(1_u16.to_ne_bytes());
        body.extend(0_u16.to_ne_bytes());
        body.extend(self.snap_len.to_ne_bytes());
        body.extend(options.end());
        block(INTERFACE, &body)
    }
}

impl Statistics {
    /// The block that says what interface `interface` counted up to now.
    pub fn block(&self, interface: u32) -> Vec<u8> {
        let time = |ns: u64| {
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&((ns >> 32) as u32).to_ne_bytes());
            bytes[4..].copy_from_slice(&(ns as u32).to_ne_bytes());
            bytes
        };
        let mut options = Options::default();
        options.put(2, &time(self.from_ns));
        options.put(3, &time(self.to_ns));
        let counts = [
            self.received,
            self.interface_dropped,
            self.accepted,
            self.dropped,
            self.delivered,
        ];
        for (code, count) in (4..).zip(counts) {
            options.put(code, &count.to_ne_bytes());
        }
        let mut body = Vec::new();
        body.extend(interface.to_ne_bytes());
        body.extend(time(self.to_ns));
        body.extend(options.end());
        block(STATISTICS, &body)
    }
}

/// How many bytes of padding bring `len` to a multiple of `align`: none, or enough for a block.
pub fn gap_to_fill(len: usize, align: usize) -> usize {
    match len.next_multiple_of(align) - len {
        0 => 0,
        gap if gap >= PADDING_MIN => gap,
        gap => gap + align,
    }
}

/// Fills `gap` (a multiple of 4, empty or of at least [`PADDING_MIN`] bytes) with one block that says nothing.
pub fn fill(gap: &mut [u8]) {
    if gap.len() < PADDING_MIN {
        return;
    }
    let len = (gap.len() as u32).to_ne_bytes();
    gap[..4].copy_from_slice(&LOCAL.to_ne_bytes());
    gap[4..8].copy_from_slice(&len);
    gap[8..12].copy_from_slice(&PADDING.to_ne_bytes());
    let end = gap.len() - 4;
    gap[12..end].fill(0);
    gap[end..].copy_from_slice(&len);
}

/// The worklist of a segment as a block; its `entries` are the last one first.
pub fn worklist(entries: &[u8]) -> Vec<u8> {
    let mut body = WORKLIST.to_ne_bytes().to_vec();
    body.extend(((entries.len() / ENTRY) as u32).to_ne_bytes());
    body.extend(entries);
    block(LOCAL, &body)
}
