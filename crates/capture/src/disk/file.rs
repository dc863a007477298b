//! One file of a capture.

use std::fs::{File, OpenOptions, Permissions, remove_file};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use std::time::Instant;

use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{Whence, lseek};
use ring::Segment;
use ring::pcapng;

use super::claim::Claimed;

/// A file that grows by whole segments, past the page cache where the file system can do that.
pub struct CaptureFile {
    /// For whole segments.
    direct: Option<File>,
    /// For all else.
    file: File,
    least: u64,
    len: u64,
    /// How much of it is there behind `len`: a part of a segment that is not closed.
    beyond: u64,
    begun: Instant,
    /// Up to where the file system keeps room for it.
    reserved: u64,
    /// How long it shall be at most.
    most: u64,
    /// Bytes that were in it and are not any more.
    missing: u64,
}

/// What a file has come to.
pub struct Ended {
    /// Still open: what went into it may be in the kernel's cache only.
    pub file: File,
    /// Bytes that are in it for good.
    pub len: u64,
    /// How many of them are not there any more.
    pub missing: u64,
    /// Whether its end could be written.
    pub result: io::Result<()>,
}

/// Room that is kept ahead: the file system finds it at once, and in one piece. While it does that it writes nothing.
const AHEAD: u64 = 256 << 20;

impl CaptureFile {
    /// Creates the file, for its owner alone, and writes the head; a new one is given to `owner`. One that is there is
    /// overwritten and then its owner's alone, too. Nobody else writes it ([`Claimed`]). It shall have `most` bytes.
    pub fn create(
        path: &Path,
        preamble: &[u8],
        (owner, most): (Option<(u32, u32)>, Option<u64>),
    ) -> io::Result<Self> {
        let Claimed { file, is_new } = Claimed::open(path, owner)?;
        if is_new {
            // A file system without owners has none to give it to.
            let _ = owner.map(|(user, group)| fchown(&file, Some(user), Some(group)));
        } else {
            file.set_len(0)?;
            // That of a file system without modes stays as it is.
            let _ = file.set_permissions(Permissions::from_mode(0o600));
        }
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(libc::O_DIRECT);
        // The same file, whatever has its name by now.
        let direct = options.open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok();
        if let Err(error) = file.write_all_at(preamble, 0) {
            // Each attempt may have another name, and none of these files would ever be removed.
            if is_new {
                let _ = remove_file(path);
            }
            return Err(error);
        }
        let len = preamble.len() as u64;
        Ok(Self {
            direct,
            file,
            least: len,
            len,
            beyond: 0,
            begun: Instant::now(),
            reserved: 0,
            most: most.unwrap_or(u64::MAX),
            missing: 0,
        })
    }

    /// Whether segments go past the page cache.
    pub fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Where whole segments are written to.
    pub fn fd(&self) -> RawFd {
        self.direct.as_ref().unwrap_or(&self.file).as_raw_fd()
    }

    /// Bytes that are in it for good.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no room for another block of a disk below the length that a file of this process may have
    /// (`RLIMIT_FSIZE`).
    pub fn is_at_limit(&self) -> bool {
        let Ok((longest, _)) = getrlimit(Resource::RLIMIT_FSIZE) else {
            return false;
        };
        let len = self.file.metadata().map_or(0, |about| about.len());
        len.saturating_add(pcapng::ALIGN as u64) > longest
    }

    /// Its length without any packet.
    pub fn least(&self) -> u64 {
        self.least
    }

    /// Whether a part of a segment that is not closed is there behind [`CaptureFile::len`].
    pub fn has_part(&self) -> bool {
        self.beyond > 0
    }

    /// When it was created.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// Where `len` bytes go, behind so many others that are under way.
    pub fn place(&mut self, others: u64, len: u64) -> u64 {
        // Before it is written behind what was cut off: a hole has a length, too.
        self.look();
        let place = self.len + others;
        self.reserve(place + len);
        place
    }

    /// Keeps room up to `end`, and beyond: what is not needed goes back when the file is cut to its length. A file system
    /// that cannot do that, or has no more room, says so when it is written to.
    fn reserve(&mut self, end: u64) {
        if end <= self.reserved {
            return;
        }
        let from = self.reserved.max(self.len);
        self.reserved = (end + AHEAD).min(self.most.max(end));
        let (from, len) = (i64::try_from(from), i64::try_from(self.reserved - from));
        if let (Ok(from), Ok(len)) = (from, len) {
            let _ = fallocate(&self.file, FallocateFlags::FALLOC_FL_KEEP_SIZE, from, len);
        }
    }

    /// So many bytes were written behind it.
    pub fn grew(&mut self, by: u64) {
        self.len += by;
        self.beyond = 0;
    }

    /// Writes what a segment holds, filled up so that the next one can be written after it. It stays there if it `is_all`
    /// of it, and is written over if not.
    pub fn write_part(&mut self, segment: &Segment<'_>, is_all: bool) -> io::Result<()> {
        let new = segment.blocks.len() as u64;
        if new == 0 || (!is_all && new == self.beyond) {
            return Ok(());
        }
        let mut part = segment.blocks.to_vec();
        if is_all {
            part.extend(pcapng::worklist(segment.entries));
        }
        let gap = pcapng::gap_to_fill(part.len(), pcapng::ALIGN);
        let end = part.len();
        part.resize(end + gap, 0);
        pcapng::fill(&mut part[end..]);
        self.look();
        self.file.write_all_at(&part, self.len)?;
        if is_all {
            self.grew(part.len() as u64);
        } else {
            self.beyond = new;
        }
        Ok(())
    }

    /// Looks whether all is there that is in it for good: anybody may cut it off, and remove it.
    fn look(&mut self) {
        let Ok(about) = self.file.metadata() else { return };
        let there = if about.nlink() == 0 { 0 } else { about.len() };
        self.lacks_from(there);
    }

    /// The same at its end, for what was cut off while a write behind it was under way: it has no hole of its own.
    fn look_for_holes(&mut self) {
        if let Ok(hole) = lseek(&self.file, 0, Whence::SeekHole) {
            self.lacks_from(u64::try_from(hole).unwrap_or(0));
        }
    }

    fn lacks_from(&mut self, there: u64) {
        self.missing = self.missing.max(self.len.saturating_sub(there));
    }

    /// Cuts off what is not in it for good.
    pub fn cut(&mut self) -> io::Result<()> {
        (self.beyond, self.reserved) = (0, self.len);
        self.file.set_len(self.len)
    }

    /// Ends it with `last`.
    pub fn end(mut self, last: &[u8]) -> Ended {
        self.look();
        self.look_for_holes();
        let result = self.cut().and_then(|()| {
            self.file.write_all_at(last, self.len)?;
            self.len += last.len() as u64;
            Ok(())
        });
        Ended {
            file: self.file,
            len: self.len,
            missing: self.missing,
            result,
        }
    }
}
