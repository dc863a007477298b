//! The blocks of pcapng: those with packets and what these need; all others are passed over unseen.

use std::ops::Range;

use super::interface::{Interface, Resolution};
use super::step::{Found, RECORD_MAX, Step};
use crate::pcapng::{Direction, ENHANCED_PACKET, INTERFACE, SECTION_HEADER, STATISTICS};

const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
/// Type and length before a block's body, and the length once more behind it.
const HEAD: usize = 8;
const FRAME: usize = HEAD + 4;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
/// The shortest section header: byte order, version and length.
pub const SECTION_MIN: usize = FRAME + 16;
/// Where the options of a section header begin, and the one that names the program.
const SECTION_OPTIONS: usize = 24;
const APPLICATION: u16 = 4;
/// The option of a packet that has words about it.
const COMMENT: u16 = 1;
/// Interfaces of a section, and different ones of a file.
const INTERFACES_MAX: usize = 4096;

/// Walks through the blocks of a file.
#[derive(Default)]
pub struct Blocks {
    is_big_endian: bool,
    /// The interfaces of this section, as places among those of the file.
    section: Vec<usize>,
    /// Whether the section says that this project wrote it, which ends each with statistics.
    is_ours: bool,
    /// Whether statistics came in the section.
    is_ended: bool,
}

impl Blocks {
    /// Whether a file that begins so is one.
    pub fn is_begun_by(head: &[u8]) -> bool {
        // The same in either byte order.
        head.starts_with(&SECTION_HEADER.to_ne_bytes())
    }

    /// Whether these few bytes are all that is left of one.
    pub fn is_cut(head: &[u8]) -> bool {
        head.len() > 1 && SECTION_HEADER.to_ne_bytes().starts_with(head)
    }

    /// Whether the section is of a writer of ours who did not come to its end.
    pub fn is_left_open(&self) -> bool {
        self.is_ours && !self.is_ended
    }

    /// What `bytes` begin with.
    #[inline]
    pub fn step(&mut self, bytes: &[u8], interfaces: &mut Vec<Interface>) -> Result<Step, &'static str> {
        if bytes.len() < FRAME {
            return Ok(Step::More(FRAME));
        }
        let mut kind = self.u32(bytes, 0)?;
        if kind == SECTION_HEADER {
            self.begin_section(bytes)?;
        } else if !matches!(
            kind,
            ENHANCED_PACKET | INTERFACE | OBSOLETE_PACKET | SIMPLE_PACKET
        ) {
            // Nothing of it is looked at.
            self.is_ended |= kind == STATISTICS;
            kind = 0;
        }
        let len = self.u32(bytes, 4)?;
        if len % 4 != 0 || (len as usize) < FRAME {
            return Err("the length of a block is no multiple of 4, or too short");
        }
        if kind == 0 {
            return Ok(Step::Skip(u64::from(len)));
        }
        let len = len as usize;
        if len > RECORD_MAX {
            return Err("a block claims more than 16 MiB");
        }
        let Some(block) = bytes.get(..len) else {
            return Ok(Step::More(len));
        };
        if self.u32(block, len - 4)? as usize != len {
            return Err("a block says two different lengths of itself");
        }
        let found = match kind {
            ENHANCED_PACKET => self.enhanced(block, interfaces)?,
            SIMPLE_PACKET => self.simple(block, interfaces)?,
            OBSOLETE_PACKET => self.obsolete(block, interfaces)?,
            SECTION_HEADER => return self.check_section(block),
            _ => return self.interface(block, interfaces),
        };
        Ok(Step::Packet(found, len))
    }

    /// The packet of a block that this machine wrote, of one of these interfaces.
    pub fn packet_of(block: &[u8], interfaces: &[Interface]) -> Result<Found, &'static str> {
        let blocks = Self {
            is_big_endian: cfg!(target_endian = "big"),
            ..Self::default()
        };
        let interface = blocks.u32(block, 8)? as usize;
        if interface >= interfaces.len() {
            return Err(UNDESCRIBED);
        }
        blocks.stamped(block, interface, interfaces)
    }

    #[inline]
    fn u32(&self, bytes: &[u8], at: usize) -> Result<u32, &'static str> {
        let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
        let word = *word.ok_or(SHORT)?;
        Ok(if self.is_big_endian {
            u32::from_be_bytes(word)
        } else {
            u32::from_le_bytes(word)
        })
    }

    #[inline]
    fn u16(&self, bytes: &[u8], at: usize) -> Result<u16, &'static str> {
        let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
        let word = *word.ok_or(SHORT)?;
        Ok(if self.is_big_endian {
            u16::from_be_bytes(word)
        } else {
            u16::from_le_bytes(word)
        })
    }

    fn u64(&self, bytes: &[u8]) -> Result<u64, &'static str> {
        let (first, second) = (u64::from(self.u32(bytes, 0)?), u64::from(self.u32(bytes, 4)?));
        Ok(if self.is_big_endian {
            first << 32 | second
        } else {
            second << 32 | first
        })
    }

    /// From here on all is in the byte order of this header.
    #[cold]
    fn begin_section(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        self.is_big_endian = false;
        self.is_big_endian = match self.u32(bytes, 8)? {
            BYTE_ORDER => false,
            other if other.swap_bytes() == BYTE_ORDER => true,
            _ => return Err("a section does not say its byte order"),
        };
        self.section.clear();
        (self.is_ours, self.is_ended) = (false, false);
        Ok(())
    }

    #[cold]
    fn check_section(&mut self, block: &[u8]) -> Result<Step, &'static str> {
        if block.len() < SECTION_MIN {
            return Err(SHORT);
        }
        if self.u16(block, 12)? != 1 {
            return Err("a section is pcapng of another version than 1");
        }
        let mut is_ours = false;
        // Nothing else is asked of these options: what is wrong with them hides no packet.
        let _ = self.options(block, SECTION_OPTIONS, |code, range| {
            is_ours |= code == APPLICATION && block[range].starts_with(b"dropless ");
            Ok(())
        });
        self.is_ours = is_ours;
        Ok(Step::Skip(block.len() as u64))
    }

    #[cold]
    fn interface(&mut self, block: &[u8], interfaces: &mut Vec<Interface>) -> Result<Step, &'static str> {
        let id = self.section.len();
        let mut interface = Interface::new(id as u32, self.u16(block, 8)?, self.u32(block, 12)?);
        self.options(block, 16, |code, range| {
            match (code, &block[range]) {
                (2, name) => interface.set_name(name),
                (9, &[resolution, ..]) => {
                    interface.resolution = Resolution::from_option(resolution)
                        .ok_or("an interface counts time in parts that 64 bits do not hold")?;
                }
                (14, value) => interface.offset_s = i64::from_ne_bytes(self.u64(value)?.to_ne_bytes()),
                _ => {}
            }
            Ok(())
        })?;
        // The same one in an earlier section is known.
        let known = interfaces.iter().position(|known| *known == interface);
        let place = known.unwrap_or(interfaces.len());
        if known.is_none() {
            interfaces.push(interface);
        }
        if id >= INTERFACES_MAX || place >= INTERFACES_MAX {
            return Err("there are more than 4096 interfaces");
        }
        self.section.push(place);
        Ok(Step::Skip(block.len() as u64))
    }

    fn place(&self, interface: u32) -> Result<usize, &'static str> {
        let place = self.section.get(interface as usize);
        place.copied().ok_or(UNDESCRIBED)
    }

    #[inline]
    fn enhanced(&self, block: &[u8], interfaces: &[Interface]) -> Result<Found, &'static str> {
        let interface = self.place(self.u32(block, 8)?)?;
        self.stamped(block, interface, interfaces)
    }

    #[cold]
    fn obsolete(&self, block: &[u8], interfaces: &[Interface]) -> Result<Found, &'static str> {
        let interface = self.place(u32::from(self.u16(block, 8)?))?;
        let mut found = self.stamped(block, interface, interfaces)?;
        // All ones: it is not known.
        let dropped = Some(self.u16(block, 10)?).filter(|dropped| *dropped != u16::MAX);
        found.dropped = found.dropped.or(dropped.map(u64::from));
        Ok(found)
    }

    /// Both blocks with a time stamp have all behind the interface at the same places.
    #[inline]
    fn stamped(
        &self,
        block: &[u8],
        interface: usize,
        interfaces: &[Interface],
    ) -> Result<Found, &'static str> {
        let stamp = u64::from(self.u32(block, 12)?) << 32 | u64::from(self.u32(block, 16)?);
        let captured = self.u32(block, 20)?;
        let original_len = self.u32(block, 24)?;
        let data = 28..28 + captured as usize;
        let room = block.len() - 4;
        if data.end > room {
            return Err("a packet is longer than its block");
        }
        let time_ns = interfaces
            .get(interface)
            .and_then(|interface| interface.time_ns(stamp));
        let mut found = Found {
            interface,
            // One before the year 1678 or after 2262 is none.
            time_ns,
            original_len: original_len.max(captured),
            direction: None,
            dropped: None,
            queue: None,
            comment: None,
            data,
        };
        let options = found.data.end.next_multiple_of(4);
        if options < room {
            self.packet_options(block, options, &mut found)?;
        }
        Ok(found)
    }

    fn packet_options(&self, block: &[u8], at: usize, found: &mut Found) -> Result<(), &'static str> {
        self.options(block, at, |code, range| {
            let value = &block[range.clone()];
            match code {
                COMMENT => {
                    found.comment.get_or_insert(range);
                }
                2 => {
                    found.direction = match self.u32(value, 0)? & 3 {
                        1 => Some(Direction::In),
                        2 => Some(Direction::Out),
                        _ => None,
                    }
                }
                4 => found.dropped = Some(self.u64(value)?),
                6 => found.queue = Some(self.u32(value, 0)?),
                _ => {}
            }
            Ok(())
        })
    }

    #[cold]
    fn simple(&self, block: &[u8], interfaces: &[Interface]) -> Result<Found, &'static str> {
        let place = self.place(0)?;
        let original_len = self.u32(block, 8)?;
        let snap_len = interfaces.get(place).map_or(0, |interface| interface.snap_len);
        let kept = if snap_len == 0 {
            original_len
        } else {
            original_len.min(snap_len)
        };
        let data = 12..12 + kept as usize;
        if data.end > block.len() - 4 {
            return Err("a packet is longer than its block");
        }
        Ok(Found {
            interface: place,
            time_ns: None,
            original_len,
            data,
            direction: None,
            dropped: None,
            queue: None,
            comment: None,
        })
    }

    /// Tells `each` the code of the options that begin at `at`, and where the value of each stands.
    fn options(
        &self,
        block: &[u8],
        mut at: usize,
        mut each: impl FnMut(u16, Range<usize>) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        let end = block.len() - 4;
        // They may end with the block, or by a code of 0.
        while at < end {
            let (code, len) = (self.u16(block, at)?, usize::from(self.u16(block, at + 2)?));
            if code == 0 {
                break;
            }
            let value = at + 4..at + 4 + len;
            if value.end > end {
                return Err("an option is longer than its block");
            }
            each(code, value)?;
            at += 4 + len.next_multiple_of(4);
        }
        Ok(())
    }
}

const UNDESCRIBED: &str = "a packet is of an interface that was not described";
const SHORT: &str = "a block is too short for what it is";
