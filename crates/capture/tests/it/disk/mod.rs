//! The disk: what the ring held is in the files, once, in order; a full disk loses nothing that the ring can hold.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use capture::disk::{Disk, Policy};
use capture::pcapng::{self, Interface, PacketHead};
use capture::ring::layout::SEGMENT_MIN;
use capture::ring::{Consumer, Producer, Ring};

use crate::mount::Mount;

mod compressed;
mod files;
mod full;
mod others;

fn ring(segments: u32) -> (Producer, Ring) {
    Producer::new(
        segments,
        SEGMENT_MIN,
        &pcapng::preamble("test", &[Interface::default()]),
    )
    .unwrap()
}

fn disk((producer, ring): (&mut Producer, &Ring), policy: Policy) -> Disk {
    let (_, page) = ring.seat(true).unwrap();
    producer.commit();
    let consumer = Consumer::new(ring.file(), page).unwrap();
    Disk::new(ring.clone(), consumer, policy).unwrap()
}

fn policy(dir: &Path) -> Policy {
    let dir = dir.to_owned();
    Policy {
        name: Box::new(move |number| dir.join(format!("{number:05}.pcapng"))),
        size: None,
        every: None,
        files: None,
        owner: None,
        flush: Duration::from_secs(3600),
        compress: false,
        end: Box::new(Vec::new),
    }
}

fn push(producer: &mut Producer, number: u64, len: usize) -> bool {
    let mut data = vec![number as u8; len];
    data[..8].copy_from_slice(&number.to_ne_bytes());
    let head = PacketHead {
        time_ns: number,
        original_len: len as u32,
        ..PacketHead::default()
    };
    producer.push(&head, len, [&data[..]]).is_ok()
}

/// Pushes these packets of 1000 bytes, for which the disk makes room.
fn fill_with(producer: &mut Producer, disk: &mut Disk, numbers: Range<u64>) {
    for number in numbers {
        while !push(producer, number, 1000) {
            disk.step(Instant::now()).unwrap();
        }
        producer.commit();
    }
}

/// Pushes so many of them, and ends.
fn fill(producer: &mut Producer, disk: &mut Disk, count: u64) {
    fill_with(producer, disk, 0..count);
    producer.end();
}

/// The files in `dir`, in the order of their names.
fn files(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// The numbers of all packets of the files in `dir`, in the order of their names.
fn numbers(dir: &Path) -> Vec<u64> {
    files(dir)
        .iter()
        .flat_map(|file| packets(&std::fs::read(file).unwrap()))
        .collect()
}

/// Walks the blocks, as any reader does.
fn packets(file: &[u8]) -> Vec<u64> {
    let word = |at: usize| u32::from_ne_bytes(*file[at..].first_chunk().unwrap());
    let (mut at, mut numbers) = (0, Vec::new());
    while at < file.len() {
        let len = word(at + 4) as usize;
        assert_eq!(word(at + len - 4), len as u32, "a block ends with its length");
        if word(at) == 6 {
            numbers.push(u64::from_ne_bytes(*file[at + 28..].first_chunk().unwrap()));
        }
        at += len;
    }
    assert_eq!(at, file.len());
    numbers
}

/// Calls `with` a disk of its own of so many bytes; only root can have one.
fn on_a_tiny_disk(bytes: u64, with: impl FnOnce(&Path)) {
    if !nix::unistd::geteuid().is_root() {
        return crate::skip::skip("needs leave to mount (root)");
    }
    let dir = tempfile::tempdir().unwrap();
    let _disk = Mount::disk(&bytes.to_string(), dir.path());
    with(dir.path());
}
