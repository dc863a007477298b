//! Sees to it that what was written to files is on the disk: a kernel that has it in its cache may find out only later that it
//! cannot be written. That takes long, so that such files go to a thread of their own.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;

/// Files that may wait, each of them open: of more, whoever closes the next one waits.
const WAITING: usize = 64;

/// A file to which nothing is written any more.
pub struct Closed {
    pub path: PathBuf,
    /// By the descriptor that it was written through: only that one is told of what went wrong.
    pub file: File,
    /// Its length.
    pub bytes: u64,
}

/// A file of which nobody knows whether it is on the disk.
pub struct Failed {
    pub path: PathBuf,
    /// Bytes that may not be there: what the kernel kept of it and what not it does not say.
    pub bytes: u64,
    pub error: io::Error,
}

/// Has files written through to the disk, one after the other.
pub struct Syncer {
    files: SyncSender<Closed>,
    failed: Receiver<Failed>,
    thread: JoinHandle<()>,
    how: How,
}

/// What is done to a file.
type How = fn(&File) -> io::Result<()>;

impl Syncer {
    /// Starts the thread.
    pub fn start() -> io::Result<Self> {
        Self::with(write_through)
    }

    fn with(how: How) -> io::Result<Self> {
        let (files, closed) = sync_channel::<Closed>(WAITING);
        let (tells, failed) = channel();
        let thread = std::thread::Builder::new().name("files-to-disk".into());
        let thread = thread.spawn(move || {
            for failure in closed.into_iter().filter_map(|file| sync(file, how)) {
                // Whoever is gone wants to know nothing.
                let _ = tells.send(failure);
            }
        })?;
        Ok(Self {
            files,
            failed,
            thread,
            how,
        })
    }

    /// Sees to this file: at once if it went past the cache, where that is short work and its room is free at once should it be
    /// removed; else in its turn, where there is room for it to wait. Returns a failure at once.
    pub fn sync(&self, closed: Closed, is_direct: bool) -> Option<Failed> {
        if is_direct {
            return sync(closed, self.how);
        }
        match self.files.try_send(closed) {
            Ok(()) => None,
            Err(TrySendError::Full(closed) | TrySendError::Disconnected(closed)) => sync(closed, self.how),
        }
    }

    /// What has failed since it was asked last.
    pub fn failed(&self) -> impl Iterator<Item = Failed> {
        self.failed.try_iter()
    }

    /// Waits until all is done; returns what has failed meanwhile.
    pub fn finish(self) -> Vec<Failed> {
        drop(self.files);
        let _ = self.thread.join();
        self.failed.into_iter().collect()
    }
}

/// Of a file that was removed meanwhile nothing needs to be on the disk, and its room is free when it is closed.
fn write_through(file: &File) -> io::Result<()> {
    if file.metadata()?.nlink() == 0 {
        return Ok(());
    }
    file.sync_data()
}

fn sync(Closed { path, file, bytes }: Closed, how: How) -> Option<Failed> {
    let error = how(&file).err()?;
    Some(Failed { path, bytes, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_late_is_told_of_every_file() {
        for how in [
            (|_: &File| Err(io::Error::from_raw_os_error(libc::EIO))) as How,
            write_through,
        ] {
            let syncer = Syncer::with(how).unwrap();
            let count = 3 * WAITING as u64;
            let mut failed = Vec::new();
            for bytes in 0..count {
                let file = tempfile::tempfile().unwrap();
                let path = bytes.to_string().into();
                failed.extend(syncer.sync(Closed { path, file, bytes }, bytes % 7 == 0));
                failed.extend(syncer.failed());
            }
            failed.extend(syncer.finish());
            let mut bytes: Vec<u64> = failed.iter().map(|failed| failed.bytes).collect();
            bytes.sort_unstable();
            let fails = how(&tempfile::tempfile().unwrap()).is_err();
            assert!(bytes.into_iter().eq(if fails { 0..count } else { 0..0 }));
        }
    }
}
