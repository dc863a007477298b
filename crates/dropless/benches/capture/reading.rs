//! `dropless read` beside tcpdump, over a large file.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use capture::disk::{Disk, Policy};
use capture::ring::Consumer;

use crate::costs::{head, ring};

/// Packets of the file.
pub const PACKETS: usize = 10_000_000;

/// Writes the file: UDP over IPv4, 64 bytes with FCS.
pub fn write(path: &Path) -> Result<(), Box<dyn Error>> {
    let (mut producer, ring) = ring()?;
    let (_seat, page) = ring.seat(true)?;
    producer.commit();
    let consumer = Consumer::new(ring.file(), page)?;
    let name = path.to_path_buf();
    let policy = Policy {
        name: Box::new(move |_| name.clone()),
        size: None,
        every: None,
        files: None,
        owner: None,
        flush: Duration::from_secs(1),
        compress: false,
        end: Box::new(Vec::new),
    };
    let mut disk = Disk::new(ring, consumer, policy)?;
    let mut frame = [0_u8; 60];
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    frame[26..38].copy_from_slice(&[198, 18, 0, 1, 198, 18, 0, 2, 0x10, 0, 0, 7]);
    frame[39] = 26;
    for index in 0..PACKETS {
        // Flows differ by their port: tcpdump looks for every address in a list of those with the same first bytes.
        frame[35] = (index % 64) as u8;
        while producer.push(&head(index, 60), 60, [&frame[..]]).is_err() {
            producer.commit();
            disk.step(Instant::now())?;
        }
    }
    producer.end();
    let written = disk.finish(&[])?;
    if written.packets != PACKETS as u64 {
        return Err(format!("{} packets are in the file", written.packets).into());
    }
    Ok(())
}

/// Seconds that a program needs to print all of it, to nobody.
pub fn time(program: &Path, arguments: &[&str], path: &Path) -> Result<f64, Box<dyn Error>> {
    let begun = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .arg(path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(format!("{} {arguments:?}: {status}", program.display()).into());
    }
    Ok(begun.elapsed().as_secs_f64())
}
