//! To the disk: a capture's files beside fio, which has nothing else to do.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use capture::disk::{Disk, Policy};
use capture::ring::{Consumer, Full, Producer, Ring};
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use serde_json::Value;

use crate::costs::{head, ring};

/// Bytes written a measurement.
const BYTES: u64 = 2 << 30;
const FRAME: usize = 1514;
/// From one look at the ring to the next, as a capture does.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What one writer did once.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Wrote {
    /// Bytes a second.
    pub rate: f64,
    /// Share of a core that writing took, also in the kernel's threads that do it for the writing one.
    pub core_share: f64,
}

/// The files of a capture, as fast as they take packets.
pub fn ours(path: &Path) -> Result<Wrote, Box<dyn Error>> {
    let (mut producer, ring) = ring()?;
    let (seat, page) = ring.seat(true)?;
    producer.commit();
    let consumer = Consumer::new(ring.file(), page)?;
    let (end, ends) = mpsc::channel();
    let path = path.to_path_buf();
    let before = used_by_others();
    let writer = std::thread::spawn(move || write(ring, consumer, path, &ends));
    let frame = [0x5A; FRAME];
    let packets = BYTES as usize / (FRAME + 46);
    for index in 0..packets {
        // A capture counts what the ring has no room for. Here the disk says how fast it goes.
        while push(&mut producer, index, &frame).is_err() {
            producer.commit();
            std::thread::sleep(Duration::from_micros(100));
        }
        if index % 64 == 0 {
            producer.commit();
        }
    }
    producer.end();
    end.send(())?;
    let (rate, elapsed) = writer.join().map_err(|_| "the writer panicked")??;
    let used = used_by_others().saturating_sub(before);
    if seat.counts().0 != packets as u64 {
        return Err("packets are missing in the file".into());
    }
    Ok(Wrote {
        rate,
        core_share: used.as_secs_f64() / elapsed,
    })
}

fn push(producer: &mut Producer, index: usize, frame: &[u8]) -> Result<(), Full> {
    producer.push(&head(index, frame.len()), frame.len(), [frame])
}

/// Bytes a second, and how long it took in seconds.
fn write(
    ring: Ring,
    consumer: Consumer,
    path: PathBuf,
    ends: &mpsc::Receiver<()>,
) -> Result<(f64, f64), String> {
    let policy = Policy {
        name: Box::new(move |_| path.clone()),
        size: None,
        every: None,
        files: None,
        owner: None,
        flush: Duration::from_millis(500),
        compress: false,
        end: Box::new(Vec::new),
    };
    let mut disk = Disk::new(ring, consumer, policy).map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let written = loop {
        disk.step(Instant::now()).map_err(|error| error.to_string())?;
        if !matches!(ends.recv_timeout(LOOK_EVERY), Err(RecvTimeoutError::Timeout)) {
            break disk.finish(&[]).map_err(|error| error.to_string())?;
        }
    };
    let elapsed = begun.elapsed().as_secs_f64();
    Ok((written.bytes as f64 / elapsed, elapsed))
}

/// Time that all threads of the process but this one were on a core: those of `io_uring` are among them.
fn used_by_others() -> Duration {
    let used = |clock| clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
    used(ClockId::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(used(ClockId::CLOCK_THREAD_CPUTIME_ID))
}

/// Nothing but writes past the page cache into a new file of that size, for which fio keeps room as a whole before it looks at
/// the clock. Neither it nor [`ours`] waits until the device has it for good (fsync).
pub fn plain(path: &Path) -> Result<Wrote, Box<dyn Error>> {
    let output = Command::new("fio")
        .args(["--name=plain", "--ioengine=io_uring", "--direct=1", "--rw=write"])
        .args(["--bs=1M", "--iodepth=8", "--output-format=json"])
        .arg(format!("--size={BYTES}"))
        .arg(format!("--filename={}", path.display()))
        .output()
        .map_err(|error| format!("fio: {error}; fix: ./dev setup"))?;
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let job = &said["jobs"][0];
    let number = |value: &Value| value.as_f64().ok_or("fio says no figure");
    let percent = number(&job["usr_cpu"])? + number(&job["sys_cpu"])?;
    Ok(Wrote {
        rate: number(&job["write"]["bw_bytes"])?,
        core_share: percent / 100.0,
    })
}
