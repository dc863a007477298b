//! Reading capture files of any program: pcap and pcapng, in either byte order, plain or compressed.
//!
//! A file is read as a stream through a bounded window, so that it may be larger than memory, a pipe, or cut short while it
//! is read. Nothing in it is trusted: what it says is checked before it is used, and what cannot be is an [`InputError`]
//! with its place. Packets before that place are given.
//!
//! pcap is as `pcap-savefile(5)` of libpcap has it, pcapng as draft-ietf-opsawg-pcapng.

mod blocks;
mod error;
mod interface;
mod pcap;
mod source;
mod step;
mod window;

pub use error::InputError;
pub use interface::{Interface, LinkType, Resolution};
pub use step::RECORD_MAX;

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use crate::pcapng::Direction;
use blocks::Blocks;
use pcap::Pcap;
use step::{Found, Step};
use window::Window;

/// A packet as its file has it; its bytes are there until the next one is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'r> {
    /// Where it was seen.
    pub interface: &'r Interface,
    /// Which of [`Reader::interfaces`] that is.
    pub interface_index: usize,
    /// How many interfaces there are, as far as was told before the packet.
    pub interface_count: usize,
    /// When, ns since the epoch of Unix. Files need not be in order. `None` where the file does not say: a Simple Packet
    /// Block has no time.
    pub time_ns: Option<i64>,
    /// Its length before it was cut.
    pub original_len: u32,
    /// Its bytes, as far as they were kept.
    pub data: &'r [u8],
    /// Which way it went, where the file says.
    pub direction: Option<Direction>,
    /// Packets lost by the interface since the one before, where the file says.
    pub dropped: Option<u64>,
    /// Its queue, where the file says.
    pub queue: Option<u32>,
    /// The first comment on it, where the file has one: bytes that anybody may have written.
    pub comment: Option<&'r [u8]>,
}

impl<'r> Packet<'r> {
    /// The packet of a block of pcapng as this machine writes it, as in a ring: of one of `interfaces`.
    ///
    /// # Errors
    /// What contradicts itself in it.
    pub fn of_block(block: &'r [u8], interfaces: &'r [Interface]) -> Result<Self, &'static str> {
        let found = Blocks::packet_of(block, interfaces)?;
        Ok(Self::at(found, interfaces, |range| &block[range]))
    }

    #[inline]
    fn at(found: Found, interfaces: &'r [Interface], bytes: impl Fn(Range<usize>) -> &'r [u8]) -> Self {
        Self {
            interface: &interfaces[found.interface],
            interface_index: found.interface,
            interface_count: interfaces.len(),
            time_ns: found.time_ns,
            original_len: found.original_len,
            data: bytes(found.data),
            direction: found.direction,
            dropped: found.dropped,
            queue: found.queue,
            comment: found.comment.map(bytes),
        }
    }
}

/// Reads a capture file, packet by packet.
pub struct Reader {
    name: String,
    window: Window,
    format: Format,
    interfaces: Vec<Interface>,
    is_compressed: bool,
    is_over: bool,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Blocks),
}

impl Reader {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let name = path.display().to_string();
        match source::open(path) {
            Ok(source) => Self::new(name, source),
            Err(error) => Err(InputError::Open(name, error)),
        }
    }

    /// Reads `source`, whose `name` errors tell.
    pub fn new(name: String, source: impl Read + Send + 'static) -> Result<Self, InputError> {
        let (plain, is_compressed) = match source::decompressed(Box::new(source)) {
            Ok(plain) => plain,
            Err(error) => return Err(InputError::Open(name, error)),
        };
        let mut window = Window::new(plain);
        let mut interfaces = Vec::new();
        // The longest head there is: that of pcap.
        let wanted = window.fill(pcap::HEAD_LEN);
        let format = match wanted {
            Err(error) => return Err(InputError::Read(name, 0, error)),
            Ok(_) => Format::find(window.bytes(), &mut interfaces),
        };
        let format = match format {
            Ok(Some(format)) => format,
            Ok(None) if window.bytes().is_empty() => return Err(InputError::Empty(name)),
            Ok(None) if Pcap::is_begun_by(window.bytes()) => {
                let there = window.bytes().len() as u64;
                return Err(InputError::Truncated(name, 0, there, pcap::HEAD_LEN as u64));
            }
            Ok(None) if Blocks::is_cut(window.bytes()) => {
                let there = window.bytes().len() as u64;
                return Err(InputError::Truncated(name, 0, there, blocks::SECTION_MIN as u64));
            }
            Ok(None) => return Err(InputError::foreign(name, window.bytes())),
            Err(what) => return Err(InputError::Damaged(name, 0, what)),
        };
        if let Format::Pcap(_) = format {
            window.take(pcap::HEAD_LEN);
        }
        Ok(Self {
            name,
            window,
            format,
            interfaces,
            is_compressed,
            is_over: false,
        })
    }

    /// The next packet; `None` at the end, and after an error.
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, InputError> {
        let found = self.advance(true)?;
        Ok(found.map(|found| self.packet(found)))
    }

    /// The next packet if it has been read already; `None` where the source would be asked, which may wait.
    #[inline]
    pub fn next_in_memory(&mut self) -> Result<Option<Packet<'_>>, InputError> {
        let found = self.advance(false)?;
        Ok(found.map(|found| self.packet(found)))
    }

    /// The interfaces that the file has told of so far. The same interface in several sections of a file is one.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it was read to its end, is a capture of this project, and lacks what that ends each file with: its writer was
    /// killed, or has not ended it yet.
    pub fn is_left_open(&self) -> bool {
        self.is_over && matches!(&self.format, Format::Pcapng(blocks) if blocks.is_left_open())
    }

    /// Whether it is compressed, so that its bytes are more than its file has.
    pub fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// How far the file was read, bytes; of a compressed one, those it was made of.
    pub fn offset(&self) -> u64 {
        self.window.offset()
    }

    #[inline]
    fn advance(&mut self, may_read: bool) -> Result<Option<Found>, InputError> {
        while !self.is_over {
            let bytes = self.window.bytes();
            let step = match &mut self.format {
                Format::Pcap(pcap) => pcap.step(bytes),
                Format::Pcapng(blocks) => blocks.step(bytes, &mut self.interfaces),
            };
            match step {
                Ok(Step::Packet(found, len)) => {
                    let at = self.window.take(len);
                    return Ok(Some(found.behind(at)));
                }
                Ok(Step::Skip(len)) if len <= bytes.len() as u64 => {
                    self.window.take(len as usize);
                }
                Ok(_) if !may_read => return Ok(None),
                Ok(Step::Skip(len)) => self.skip(len)?,
                Ok(Step::More(len)) => self.more(len)?,
                Err(what) => {
                    self.is_over = true;
                    return Err(InputError::Damaged(self.name.clone(), self.offset(), what));
                }
            }
        }
        Ok(None)
    }

    #[cold]
    fn more(&mut self, len: usize) -> Result<(), InputError> {
        let offset = self.offset();
        let is_there = self.window.fill(len);
        let there = self.window.bytes().len() as u64;
        self.go_on(is_there, offset, there, len as u64)
    }

    #[cold]
    fn skip(&mut self, len: u64) -> Result<(), InputError> {
        let offset = self.offset();
        let is_there = self.window.skip(len);
        let there = self.offset() - offset;
        self.go_on(is_there, offset, there, len)
    }

    fn go_on(
        &mut self,
        is_there: std::io::Result<bool>,
        offset: u64,
        there: u64,
        wanted: u64,
    ) -> Result<(), InputError> {
        let name = || self.name.clone();
        let error = match is_there {
            Ok(true) => return Ok(()),
            Ok(false) if there == 0 => {
                self.is_over = true;
                return Ok(());
            }
            Ok(false) => InputError::Truncated(name(), offset, there, wanted),
            Err(error) => InputError::Read(name(), offset + there, error),
        };
        self.is_over = true;
        Err(error)
    }

    #[inline]
    fn packet(&self, found: Found) -> Packet<'_> {
        Packet::at(found, &self.interfaces, |range| self.window.at(range))
    }
}

impl Format {
    /// By the first bytes; `None` if no program writes such.
    fn find(head: &[u8], interfaces: &mut Vec<Interface>) -> Result<Option<Self>, &'static str> {
        if Blocks::is_begun_by(head) {
            return Ok(Some(Self::Pcapng(Blocks::default())));
        }
        let Some((pcap, interface)) = Pcap::new(head)? else {
            return Ok(None);
        };
        interfaces.push(interface);
        Ok(Some(Self::Pcap(pcap)))
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("name", &self.name)
            .field("offset", &self.offset())
            .field("interfaces", &self.interfaces)
            .finish_non_exhaustive()
    }
}
