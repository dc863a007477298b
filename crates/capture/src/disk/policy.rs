//! What is asked of a capture's files, and what has become of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::pack::Packed;

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
    /// What a file ends with that is followed by another one: blocks of pcapng, always of the same length.
    pub end: Box<dyn Fn() -> Vec<u8> + Send>,
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
    /// Those of them that are there at the end, the oldest first.
    pub kept: Vec<PathBuf>,
    /// Such as go through the page cache, since their file system cannot do without.
    pub cached: u64,
    /// Whether the disk refuses to be written just now, or did so at the end.
    pub error: Option<String>,
    /// How often it refused.
    pub errors: u64,
    /// Files that others removed or cut off while they were written, or of which the kernel said late that it could not write
    /// them, and how many bytes each lacks, at most.
    pub short: Vec<(PathBuf, u64)>,
    /// Packets that were still in the ring when the disk refused for the last time.
    pub lost: u64,
    /// What was compressed, where that was asked for.
    pub packed: Option<Packed>,
}

impl Written {
    /// So many bytes of a file are not there, or may not be.
    pub(super) fn lacks(&mut self, path: &Path, bytes: u64) {
        match self.short.iter_mut().find(|(short, _)| short == path) {
            Some((_, known)) => *known = bytes.max(*known),
            None => self.short.push((path.into(), bytes)),
        }
    }
}
