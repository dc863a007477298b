//! The files of a capture: a thread that writes what the ring holds.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, anyhow};
use capture::disk::{Disk, Policy, Written};
use capture::ring::{Consumer, Ring, Seat};

use crate::plan::FilesPlan;

/// From one look at the ring to the next.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// What came is on the disk after this long.
const FLUSH: Duration = Duration::from_millis(500);

/// The thread, and its seat in the ring.
pub struct DiskSide {
    pub seat: Arc<Seat>,
    pub path: PathBuf,
    /// What ends the last file is sent here, once the producer has ended.
    last: mpsc::Sender<Vec<u8>>,
    thread: JoinHandle<Result<Written>>,
}

impl DiskSide {
    /// Opens the first file, and has a thread write to it what comes to this seat.
    pub fn start(plan: &FilesPlan, ring: &Ring, (seat, consumer): (Arc<Seat>, Consumer)) -> Result<Self> {
        let named = || format!("cannot write {}", plan.path.display());
        let mut disk = Disk::new(ring.clone(), consumer, policy(plan)).with_context(named)?;
        let (last, ends) = mpsc::channel::<Vec<u8>>();
        let write = move || -> Result<Written> {
            loop {
                disk.step(Instant::now())?;
                match ends.recv_timeout(LOOK_EVERY) {
                    Ok(last) => return Ok(disk.finish(&last)?),
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(disk.finish(&[])?),
                }
            }
        };
        let thread = std::thread::Builder::new().name("disk".into()).spawn(write);
        Ok(Self {
            seat,
            path: plan.path.clone(),
            last,
            thread: thread.context("cannot start the thread that writes files")?,
        })
    }

    /// The producer has ended: the rest is written, and the last file ends with `last`.
    pub fn finish(self, last: Vec<u8>) -> Result<Written> {
        let _ = self.last.send(last);
        let died = |_| Err(anyhow!("the thread that writes files ended by itself"));
        self.thread.join().unwrap_or_else(died)
    }
}

fn policy(plan: &FilesPlan) -> Policy {
    let (path, rotates) = (plan.path.clone(), plan.rotates());
    Policy {
        name: Box::new(move |number| {
            if rotates {
                numbered(&path, number)
            } else {
                path.clone()
            }
        }),
        size: plan.size,
        every: plan.every_ns.map(Duration::from_nanos),
        files: plan.files,
        flush: FLUSH,
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
