//! Compresses files that are closed, by zstd, in a thread of its own: nobody who captures waits for it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
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

enum Job {
    Pack(PathBuf),
    Remove(PathBuf),
}

/// Compresses files, one after the other.
pub struct Packer {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<Work>,
}

impl Packer {
    /// Starts the thread.
    pub fn start() -> io::Result<Self> {
        let (jobs, asked) = mpsc::channel();
        let thread = std::thread::Builder::new().name("compress".into());
        let thread = thread.spawn(move || asked.into_iter().fold(Work::default(), Work::after))?;
        Ok(Self { jobs, thread })
    }

    /// Compresses a file that nobody writes any more.
    pub fn pack(&self, path: &Path) {
        // A thread that is gone is told at the end.
        let _ = self.jobs.send(Job::Pack(path.into()));
    }

    /// Removes a file, compressed or not, in its turn.
    pub fn remove(&self, path: PathBuf) {
        let _ = self.jobs.send(Job::Remove(path));
    }

    /// Waits until all is done; returns also what could not be removed.
    pub fn finish(self) -> (Packed, Vec<PathBuf>) {
        drop(self.jobs);
        let died = |_| Work {
            packed: Packed {
                failed: 1,
                error: Some("the thread that compresses ended by itself".into()),
                ..Packed::default()
            },
            ..Work::default()
        };
        let Work { packed, left } = self.thread.join().unwrap_or_else(died);
        (packed, left)
    }
}

/// What the thread has done, and what it could not.
#[derive(Default)]
struct Work {
    packed: Packed,
    /// Files that could not be removed: it is tried again with each job.
    left: Vec<PathBuf>,
}

impl Work {
    fn after(mut self, job: Job) -> Self {
        let to_pack = match job {
            Job::Pack(path) => Some(path),
            Job::Remove(path) => {
                self.left.push(path);
                None
            }
        };
        // One of both is there.
        self.left
            .retain(|path| !(is_removed(&packed(path)) && is_removed(path)));
        match to_pack.map(|path| pack(&path)) {
            Some(Ok(bytes)) => {
                self.packed.files += 1;
                self.packed.bytes += bytes;
            }
            Some(Err(error)) => {
                self.packed.failed += 1;
                self.packed.error = Some(error.to_string());
            }
            None => {}
        }
        self
    }
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

/// Compresses a file into one beside it, which has its name only once it is whole. Returns its length.
fn pack(path: &Path) -> io::Result<u64> {
    let part = with(path, ".zst.part");
    let packed = write(path, &part).and_then(|bytes| {
        std::fs::rename(&part, with(path, EXTENSION))?;
        std::fs::remove_file(path)?;
        Ok(bytes)
    });
    if packed.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    packed
}

fn write(from: &Path, to: &Path) -> io::Result<u64> {
    // What an earlier run left half done.
    let _ = std::fs::remove_file(to);
    let mut from = File::open(from)?;
    let owner = from.metadata()?;
    let to = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    // A file system without owners has none to give it to.
    let _ = fchown(&to, Some(owner.uid()), Some(owner.gid()));
    let mut encoder = zstd::Encoder::new(&to, LEVEL)?;
    encoder.include_checksum(true)?;
    io::copy(&mut from, &mut encoder)?;
    encoder.finish()?;
    to.sync_all()?;
    Ok(to.metadata()?.len())
}
