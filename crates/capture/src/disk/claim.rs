//! A file of a capture has one writer: two would destroy it for each other.

use std::fs::{File, OpenOptions, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// So often a file may be exchanged while it is opened.
const ATTEMPTS: usize = 8;

/// A file that this process alone writes, as long as it is open here (`flock(2)`; whoever only reads asks for no lock).
pub struct Claimed {
    /// To be written; what was there is there.
    pub file: File,
    /// It was made just now, for its owner alone.
    pub is_new: bool,
}

impl Claimed {
    /// Opens the file at `path`, or makes it. One that is there must be ours, or that of the user (and group) whom new files
    /// are given to: whoever else put it there could read along.
    ///
    /// # Errors
    /// `WouldBlock` where another process writes it, `InvalidInput` for what is no regular file (a link, which is not
    /// followed, too), `PermissionDenied` for another's, each with a sentence; else what the kernel says.
    pub fn open(path: &Path, owner: Option<(u32, u32)>) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            check(path)?;
            let claimed = match options().create_new(true).open(path) {
                Ok(file) => Self { file, is_new: true },
                Err(error) if error.kind() == ErrorKind::AlreadyExists => match options().open(path) {
                    Ok(file) => Self { file, is_new: false },
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(error) => return Err(error),
                },
                Err(error) => return Err(error),
            };
            let whose = claimed.file.metadata()?.uid();
            let is_ours =
                whose == nix::unistd::geteuid().as_raw() || owner.is_some_and(|(user, _)| user == whose);
            if !claimed.is_new && !is_ours {
                let what = format!("it is a file of user {whose}'s");
                return Err(io::Error::new(ErrorKind::PermissionDenied, what));
            }
            lock(&claimed.file)?;
            // Another process may have removed it before it was locked: nobody would find what is written then.
            if is_at(&claimed.file, path)? {
                return Ok(claimed);
            }
        }
        Err(io::Error::other("others remove it again and again"))
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    // What became a pipe since it was looked at is not waited for.
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

/// Files are written at several places at once, and cut: only regular ones can be.
fn check(path: &Path) -> io::Result<()> {
    let Ok(there) = symlink_metadata(path) else {
        return Ok(());
    };
    let kind = there.file_type();
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_symlink() {
        "it is a link, which is not followed"
    } else if kind.is_dir() {
        "it is a directory"
    } else if kind.is_fifo() {
        "it is a pipe and no regular file"
    } else {
        "it is no regular file"
    };
    Err(io::Error::new(ErrorKind::InvalidInput, what))
}

/// A file system without locks has none to give.
fn lock(file: &File) -> io::Result<()> {
    // SAFETY: the file is open; the call touches no memory of ours.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.kind() == ErrorKind::WouldBlock => {
            Err(io::Error::new(ErrorKind::WouldBlock, "another process writes it"))
        }
        _ => Ok(()),
    }
}

/// Whether `path` still names this file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let (open, named) = (file.metadata()?, symlink_metadata(path));
    Ok(named.is_ok_and(|named| (named.dev(), named.ino()) == (open.dev(), open.ino())))
}
