//! Consumers of the ring in this process: files, and standard output. Each is a thread of its own, which may be as slow as
//! it likes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, anyhow, ensure};
use capture::disk::{Claimed, Disk, Policy, Written};
use capture::ring::{Consumer, Producer, Ring, Seat};
use host::PortUri;
use measure::{ConsumerSummary, FileSummary, Note};
use report::published::ConsumerLevel;

use super::refusals::{Refusals, refusals};
use super::stream::{Stop, ended, stream};
use crate::about::About as _;
use crate::plan::FilesPlan;

/// What came is on the disk after this long.
const FLUSH: Duration = Duration::from_millis(500);

/// What a consumer came to.
#[derive(Default)]
struct Came {
    taken: u64,
    lost: u64,
    /// What it has not taken is lost, too: it could not go on.
    loses_rest: bool,
    files: Option<FileSummary>,
    /// See [`Left`].
    short: Vec<(String, u64)>,
    notes: Vec<Note>,
}

/// A consumer as control sees it.
pub struct ConsumerSide {
    name: &'static str,
    seat: Arc<Seat>,
    /// What ends its stream is sent here, once the producer has ended.
    last: mpsc::Sender<Vec<u8>>,
    thread: JoinHandle<Result<Came>>,
    behind_max: u64,
    /// Of files: when the disk refuses.
    refusals: Option<Refusals>,
}

/// What a consumer left.
pub struct Left {
    pub summary: ConsumerSummary,
    pub files: Option<FileSummary>,
    /// Files that are shorter than what was written to them, and by how many bytes.
    pub short: Vec<(String, u64)>,
    pub notes: Vec<Note>,
}

impl ConsumerSide {
    /// The files of `plan`, each of which but the last ends with what `end` says then: the first one is opened here, so that a
    /// wrong name is an error before there is any packet.
    pub fn files(
        plan: &FilesPlan,
        end: Box<dyn Fn() -> Vec<u8> + Send>,
        (producer, ring): (&mut Producer, &Ring),
    ) -> Result<Self> {
        let (seat, consumer) = seat(producer, ring)?;
        let disk = Disk::new(ring.clone(), consumer, policy(plan, end));
        let mut disk = disk.map_err(|error| cannot_write(&plan.path, &error))?;
        let path = plan.path.display().to_string();
        let (mut tell, refusals) = refusals();
        let started = Self::start("files", seat, move |ends| {
            let written = loop {
                disk.step(Instant::now())?;
                tell.look(disk.refusals());
                if let Some(last) = ended(ends) {
                    break disk.finish(&last)?;
                }
            };
            let packed = written.packed.clone().unwrap_or_default();
            let named = |path: &PathBuf| path.display().to_string();
            Ok(Came {
                taken: written.packets,
                lost: written.lost,
                loses_rest: false,
                notes: notes(&written),
                short: short(&written),
                files: Some(FileSummary {
                    path: written.kept.last().map_or(path, named),
                    files: written.files,
                    kept: written.kept.len() as u64,
                    oldest: written.kept.first().map_or_else(String::new, named),
                    packets: written.packets,
                    bytes: written.bytes,
                    errors: written.errors,
                    compressed: packed.files,
                    compressed_bytes: packed.bytes,
                }),
            })
        });
        started.map(|side| Self {
            refusals: Some(refusals),
            ..side
        })
    }

    /// A stream of pcapng to `sink`, which may wait.
    pub fn stream(sink: File, producer: &mut Producer, ring: &Ring) -> Result<Self> {
        let (seat, mut consumer) = seat(producer, ring)?;
        Self::start("standard output", seat, move |ends| {
            let mut taken = 0;
            let written = stream(sink, &mut consumer, ends, &mut taken);
            let mut came = Came {
                taken,
                ..Came::default()
            };
            match written {
                Err(Stop::Reader(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
                    let text = format!("standard output took no more: {error}; what it did not take is lost");
                    came.loses_rest = true;
                    came.notes.push(Note::new("stream_ended", text));
                }
                Err(Stop::Ring(error)) => return Err(error),
                // Whoever read has what it wanted.
                Err(Stop::Reader(_)) | Ok(()) => {}
            }
            Ok(came)
        })
    }

    fn start(
        name: &'static str,
        seat: Arc<Seat>,
        work: impl FnOnce(&mpsc::Receiver<Vec<u8>>) -> Result<Came> + Send + 'static,
    ) -> Result<Self> {
        let (last, ends) = mpsc::channel::<Vec<u8>>();
        let thread = std::thread::Builder::new().name("consumer".into());
        let thread = thread.spawn(move || work(&ends));
        Ok(Self {
            name,
            seat,
            last,
            thread: thread.context("cannot start the thread of a consumer")?,
            behind_max: 0,
            refusals: None,
        })
    }

    /// What its disk does, in a line, when that has changed.
    pub fn says(&mut self) -> Option<String> {
        self.refusals.as_mut()?.line(Instant::now())
    }

    /// Sees how far it is behind, in segments of the ring.
    pub fn look(&mut self, begun: u64) {
        self.behind_max = self.behind_max.max(begun.saturating_sub(self.seat.released()));
        if self.is_gone() {
            self.seat.vacate();
        }
    }

    /// How it stands, when so many segments have been begun.
    pub fn level(&self, begun: u64) -> ConsumerLevel {
        let (taken, lost) = self.seat.counts();
        let behind = begun.saturating_sub(self.seat.released());
        ConsumerLevel {
            name: self.name.into(),
            lossless: true,
            taken,
            lost,
            behind,
            behind_max: self.behind_max.max(behind),
        }
    }

    /// Whether it has ended by itself: its reader went away.
    pub fn is_gone(&self) -> bool {
        self.thread.is_finished()
    }

    /// The producer has ended after so many packets: what is left is taken, and the stream ends with `last`.
    pub fn finish(self, captured: u64, last: Vec<u8>) -> Result<Left> {
        let (offered, lossless) = (captured.saturating_sub(self.seat.first()), true);
        let _ = self.last.send(last);
        let died = |_| Err(anyhow!("the thread of a consumer ended by itself"));
        let came = self.thread.join().unwrap_or_else(died)?;
        let rest = offered.saturating_sub(came.taken + came.lost);
        let (cut, left) = if came.loses_rest { (rest, 0) } else { (0, rest) };
        let summary = ConsumerSummary {
            name: self.name.into(),
            lossless,
            offered,
            taken: came.taken,
            lost: came.lost + cut,
            left,
            behind_max: self.behind_max,
            implausible: false,
        };
        Ok(Left {
            summary,
            files: came.files,
            short: came.short,
            notes: came.notes,
        })
    }
}

/// A lossless seat in the ring, and who sits there.
fn seat(producer: &mut Producer, ring: &Ring) -> Result<(Arc<Seat>, Consumer)> {
    let (seat, page) = ring.seat(true)?;
    // Nobody polls yet: the producer takes notice here.
    producer.commit();
    Ok((seat, Consumer::new(ring.file(), page)?))
}

/// Whether the first file can be written, before anything else is done, and is none of a port's; what is there stays as it is.
pub fn check_file(plan: &FilesPlan, ports: &[PortUri]) -> Result<()> {
    let path = name(plan)(1);
    check_apart(&path, &format!("--to {}", path.display()), ports).about("--to")?;
    let claimed =
        Claimed::open(&path, report::ours::invoker()).map_err(|error| cannot_write(&path, &error))?;
    if claimed.is_new {
        let _ = std::fs::remove_file(&path);
    }
    Ok(())
}

/// Whether a file that is written, `named` so, is none of a port's.
pub fn check_apart(written_to: &Path, named: &str, ports: &[PortUri]) -> Result<()> {
    for port in ports {
        let (read, written) = port.kind.files();
        let mut files = read.into_iter().chain(written);
        ensure!(
            !files.any(|file| host::is_same_file(file, written_to)),
            "{named} is a file of port {port}; write to another one"
        );
    }
    Ok(())
}

/// Why a file cannot be written, and what to do.
fn cannot_write(path: &Path, error: &io::Error) -> anyhow::Error {
    let advice = match error.kind() {
        io::ErrorKind::WouldBlock => "; choose another name, or end that one",
        // The kernel's own word for it has a number.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            "; choose another name, or remove it first"
        }
        io::ErrorKind::InvalidInput => "; name a file, or stream with --stdout",
        io::ErrorKind::NotADirectory | io::ErrorKind::NotFound => {
            "; name a file in a directory that is there"
        }
        _ => "",
    };
    anyhow!("cannot write {}: {error}{advice}", path.display())
}

/// The name of each file, by its number.
fn name(plan: &FilesPlan) -> impl Fn(u64) -> PathBuf + Send + use<> {
    let (path, rotates) = (plan.path.clone(), plan.rotates());
    move |number| {
        if rotates {
            numbered(&path, number)
        } else {
            path.clone()
        }
    }
}

fn policy(plan: &FilesPlan, end: Box<dyn Fn() -> Vec<u8> + Send>) -> Policy {
    Policy {
        name: Box::new(name(plan)),
        size: plan.size,
        every: plan.every_ns.map(Duration::from_nanos),
        files: plan.files,
        owner: report::ours::invoker(),
        flush: FLUSH,
        compress: plan.compress,
        end,
    }
}

/// The name of one of several files: `name_00001_2026-11-22T12-34-56Z.pcapng`.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let time = report::utc::stamp(SystemTime::now());
    let extension = path
        .extension()
        .map(|extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!(
        "{stem}_{number:05}_{time}{}",
        extension.unwrap_or_default()
    ))
}

fn short(written: &Written) -> Vec<(String, u64)> {
    let short = written.short.iter();
    short
        .map(|(path, missing)| (path.display().to_string(), *missing))
        .collect()
}

fn notes(written: &Written) -> Vec<Note> {
    let mut notes = Vec::new();
    if written.errors > 0 {
        let why = written
            .error
            .as_ref()
            .map_or_else(String::new, |error| format!(" ({error})"));
        let text = format!(
            "the disk refused to be written {} times{why}; what the ring still held was tried again",
            written.errors
        );
        notes.push(Note::new("disk_refused", text));
    }
    if let Some(packed) = written.packed.as_ref().filter(|packed| packed.failed > 0) {
        let why = packed.error.as_deref().unwrap_or("for no known reason");
        let text = format!(
            "{} files were not compressed and stay as they are: {why}",
            packed.failed
        );
        notes.push(Note::new("not_compressed", text));
    }
    if written.cached > 0 {
        let text = "the file system cannot be written past the page cache (O_DIRECT): files go through it, which costs memory bandwidth";
        notes.push(Note::new("files_cached", text));
    }
    notes
}

#[cfg(test)]
mod tests {
    use capture::disk::Packed;

    use super::*;

    #[test]
    fn files_that_stayed_as_they_were_are_told() {
        let packed = |failed| Packed {
            failed,
            error: Some("no room".to_owned()),
            ..Packed::default()
        };
        let told = |failed| {
            notes(&Written {
                packed: Some(packed(failed)),
                ..Written::default()
            })
        };
        assert!(told(0).is_empty());
        let [note] = &told(2)[..] else {
            panic!("not one note")
        };
        assert_eq!(note.code, "not_compressed");
        assert!(note.text.starts_with("2 files were not compressed") && note.text.ends_with("no room"));
    }
}
