//! Compresses files that are closed, by zstd, in a thread of its own: nobody who captures waits for it.
//!
//! The newest comes first: where compressing is slower than capturing, the oldest files are removed before their turn comes, and
//! one that is begun has as long as files are kept.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// What a file has after its name once it is compressed.
const EXTENSION: &str = ".zst";
/// zstd's own default.
const LEVEL: i32 = 3;

/// What has become of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Files that are compressed; such as they were are gone.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Files that stayed as they were, and why the last of them did.
    pub failed: u64,
    /// See `failed`.
    pub error: Option<String>,
}

/// Compresses files, one after the other.
pub struct Packer {
    wanted: Arc<Wanted>,
    thread: Option<JoinHandle<Packed>>,
}

/// What is to be compressed.
#[derive(Default)]
struct Wanted {
    list: Mutex<List>,
    news: Condvar,
}

#[derive(Default)]
struct List {
    /// The one that is being compressed among them. Whoever takes a file off the list has it for himself.
    files: Vec<PathBuf>,
    /// No more come.
    is_over: bool,
}

impl Packer {
    /// Starts the thread.
    pub fn start() -> io::Result<Self> {
        let wanted = Arc::new(Wanted::default());
        let thread = std::thread::Builder::new().name("compress".into());
        let thread = thread.spawn({
            let wanted = Arc::clone(&wanted);
            move || work(&wanted)
        })?;
        Ok(Self {
            wanted,
            thread: Some(thread),
        })
    }

    /// Compresses a file that nobody writes any more.
    pub fn pack(&self, path: &Path) {
        self.wanted.lock().files.push(path.into());
        self.wanted.news.notify_one();
    }

    /// Removes a file, compressed or not, at once, also one whose turn has not come or that is being compressed; whether it is not
    /// there any more.
    pub fn is_removed(&self, path: &Path) -> bool {
        let mut list = self.wanted.lock();
        list.files.retain(|wanted| wanted != path);
        // One of both is there, as nobody exchanges them meanwhile.
        is_removed(&packed(path)) && is_removed(path)
    }

    /// Waits until all is done.
    pub fn finish(mut self) -> Packed {
        self.wanted.end();
        let died = || Packed {
            failed: 1,
            error: Some("the thread that compresses ended by itself".into()),
            ..Packed::default()
        };
        let thread = self.thread.take();
        thread.and_then(|thread| thread.join().ok()).unwrap_or_else(died)
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        self.wanted.end();
    }
}

impl Wanted {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.news.notify_one();
    }

    /// Waits for the next file; `None` if none comes.
    fn next_file(&self) -> Option<PathBuf> {
        let waits = |list: &mut List| list.files.is_empty() && !list.is_over;
        let list = self.news.wait_while(self.lock(), waits);
        list.unwrap_or_else(PoisonError::into_inner).files.last().cloned()
    }

    fn has(&self, path: &Path) -> bool {
        self.lock().files.iter().any(|wanted| wanted == path)
    }

    /// Takes it off the list and does `work` with it, before anybody else can; `None` where somebody was first.
    fn take<T>(&self, path: &Path, work: impl FnOnce() -> T) -> Option<T> {
        let mut list = self.lock();
        let at = list.files.iter().position(|wanted| wanted == path)?;
        list.files.swap_remove(at);
        Some(work())
    }
}

/// All that the thread does.
fn work(wanted: &Wanted) -> Packed {
    let mut done = Packed::default();
    while let Some(path) = wanted.next_file() {
        let part = with(&path, ".zst.part");
        let written = write(&path, &part, wanted);
        let ended = wanted.take(&path, || {
            let bytes = written?;
            std::fs::rename(&part, packed(&path))?;
            std::fs::remove_file(&path)?;
            Ok::<_, io::Error>(bytes)
        });
        match ended {
            Some(Ok(bytes)) => {
                done.files += 1;
                done.bytes += bytes;
                continue;
            }
            Some(Err(error)) => {
                done.failed += 1;
                done.error = Some(error.to_string());
            }
            // It was removed meanwhile.
            None => {}
        }
        let _ = std::fs::remove_file(&part);
    }
    done
}

/// Removes a file; whether it is not there any more.
pub fn is_removed(path: &Path) -> bool {
    std::fs::remove_file(path).map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |()| true)
}

/// The name that a file has once it is compressed.
pub fn packed(path: &Path) -> PathBuf {
    with(path, EXTENSION)
}

fn with(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    name.into()
}

/// A file that is read as long as it is wanted.
struct Source<'w> {
    file: File,
    path: &'w Path,
    wanted: &'w Wanted,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.wanted.has(self.path) {
            self.file.read(buffer)
        } else {
            Err(io::Error::other("it is not wanted any more"))
        }
    }
}

/// Compresses a file into one beside it, which gets its name only once it is whole. Returns its length.
fn write(from: &Path, to: &Path, wanted: &Wanted) -> io::Result<u64> {
    // What an earlier run left half done.
    let _ = std::fs::remove_file(to);
    let file = File::open(from)?;
    let owner = file.metadata()?;
    let to = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    // A file system without owners has none to give it to.
    let _ = fchown(&to, Some(owner.uid()), Some(owner.gid()));
    let mut encoder = zstd::Encoder::new(&to, LEVEL)?;
    encoder.include_checksum(true)?;
    let mut source = Source {
        file,
        path: from,
        wanted,
    };
    io::copy(&mut source, &mut encoder)?;
    encoder.finish()?;
    to.sync_all()?;
    Ok(to.metadata()?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compressing takes longer than they are to be there: nothing of them waits for its turn.
    #[test]
    fn what_is_removed_is_gone_at_once_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = |number: u8| dir.path().join(format!("{number}.pcapng"));
        let packer = Packer::start().unwrap();
        for number in 0..4 {
            // What zstd is slow with.
            let noise = (0..16_u64 << 20).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 29) as u8);
            std::fs::write(path(number), noise.collect::<Vec<u8>>()).unwrap();
        }
        (0..4).for_each(|number| packer.pack(&path(number)));
        for number in [0, 3, 1] {
            assert!(packer.is_removed(&path(number)));
            assert!(!path(number).exists() && !packed(&path(number)).exists());
        }
        let done = packer.finish();
        assert!(done.files >= 1 && done.failed == 0, "{done:?}");
        let left: Vec<PathBuf> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(left, [packed(&path(2))]);
    }
}
