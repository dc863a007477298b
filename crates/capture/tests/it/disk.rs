//! The disk: what the ring held is in the files, once, in order; a full disk loses nothing that the ring can hold.

use std::fs::Permissions;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use capture::disk::{Disk, Policy, Written};
use capture::pcapng::{self, Interface, PacketHead, Statistics};
use capture::ring::layout::SEGMENT_MIN;
use capture::ring::{Consumer, Producer, Ring};

use crate::mount::Mount;

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

#[test]
fn all_that_the_ring_held_is_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (mut producer, ring) = ring(16);
    let mut disk = disk((&mut producer, &ring), policy(dir.path()));
    let count = 20_000;
    for number in 0..count {
        while !push(&mut producer, number, 60 + number as usize % 1400) {
            disk.step(Instant::now()).unwrap();
        }
        if number % 64 == 0 {
            producer.commit();
            disk.step(Instant::now()).unwrap();
        }
    }
    producer.end();
    let written = disk.finish(&[]).unwrap();
    assert!(numbers(dir.path()).into_iter().eq(0..count));
    let len = std::fs::metadata(dir.path().join("00001.pcapng")).unwrap().len();
    let expected = Written {
        packets: count,
        bytes: len,
        files: 1,
        kept: files(dir.path()),
        cached: written.cached,
        ..Written::default()
    };
    assert_eq!(written, expected);
}

#[test]
fn what_came_is_on_the_disk_before_its_segment_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let (mut producer, ring) = ring(4);
    let flushing = Policy {
        flush: Duration::ZERO,
        ..policy(dir.path())
    };
    let mut disk = disk((&mut producer, &ring), flushing);
    let mut seen = 0;
    for number in 0..500 {
        assert!(push(&mut producer, number, 1000));
        producer.commit();
        for _ in 0..3 {
            disk.step(Instant::now()).unwrap();
        }
        if !disk.is_busy() {
            let there = numbers(dir.path()).len();
            assert!(there >= seen);
            seen = there;
        }
    }
    assert!(seen > 100, "{seen}");
    producer.end();
    disk.finish(&[]).unwrap();
    assert!(numbers(dir.path()).into_iter().eq(0..500));
}

#[test]
fn files_end_at_their_size_and_only_the_newest_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (mut producer, ring) = ring(4);
    let size = u64::from(SEGMENT_MIN) * 2 + 4096;
    let rotating = Policy {
        size: Some(size),
        files: Some(3),
        ..policy(dir.path())
    };
    let mut disk = disk((&mut producer, &ring), rotating);
    fill(&mut producer, &mut disk, 2000);
    let written = disk.finish(&[]).unwrap();
    assert!(written.files > 5 && written.packets == 2000, "{written:?}");
    let kept = files(dir.path());
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert_eq!(written.kept, kept);
    for file in kept {
        let about = file.metadata().unwrap();
        // What was kept ahead went back.
        assert!(
            about.len() <= size && about.blocks() * 512 <= size + (1 << 20),
            "{about:?}"
        );
    }
    let numbers = numbers(dir.path());
    assert!(numbers.iter().copied().eq(2000 - numbers.len() as u64..2000));
}

/// Each says at its end what was counted by then; the last one what it is told to.
#[test]
fn every_file_has_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let (mut producer, ring) = ring(4);
    let size = u64::from(SEGMENT_MIN) * 2;
    let told = Arc::new(AtomicU64::new(0));
    let block = |received| {
        let counted = Statistics {
            received,
            ..Statistics::default()
        };
        counted.block(0)
    };
    let rotating = Policy {
        size: Some(size),
        end: Box::new({
            let told = Arc::clone(&told);
            move || block(told.fetch_add(1, Relaxed))
        }),
        ..policy(dir.path())
    };
    let mut disk = disk((&mut producer, &ring), rotating);
    let first = told.load(Relaxed);
    fill(&mut producer, &mut disk, 1000);
    let written = disk.finish(&block(u64::MAX)).unwrap();
    assert!(written.files > 5, "{written:?}");
    assert_eq!(
        told.load(Relaxed) - first,
        written.files - 1,
        "each was asked for once"
    );
    let files = files(dir.path());
    for (number, file) in (first..).zip(&files) {
        let bytes = std::fs::read(file).unwrap();
        let last = files.last() == Some(file);
        let end = block(if last { u64::MAX } else { number });
        assert!(bytes.ends_with(&end), "{number}");
        assert!(last || bytes.len() as u64 <= size);
    }
    assert!(numbers(dir.path()).into_iter().eq(0..1000));
}

/// Whenever its writer is killed, a file has all packets up to some place, and ends there: no hole, no half of a block.
#[test]
fn a_file_is_whole_at_every_moment() {
    let dir = tempfile::tempdir().unwrap();
    let (mut producer, ring) = ring(64);
    let mut disk = disk((&mut producer, &ring), policy(dir.path()));
    // The page cache writes page by page.
    if disk.written().cached > 0 {
        return crate::skip::skip("needs a file system of direct writes below TMPDIR");
    }
    let count = 60_000;
    let writer = std::thread::spawn(move || {
        fill(&mut producer, &mut disk, count);
        disk.finish(&[]).unwrap()
    });
    let mut seen = 0;
    while !writer.is_finished() {
        let numbers = numbers(dir.path());
        assert!(numbers.len() >= seen && numbers.iter().copied().eq(0..numbers.len() as u64));
        seen = numbers.len();
    }
    assert_eq!(writer.join().unwrap().packets, count);
    assert!(numbers(dir.path()).into_iter().eq(0..count));
}

/// A link on which little goes by: files end by time all the same, each with packets.
#[test]
fn files_end_at_their_time_on_a_quiet_link() {
    let dir = tempfile::tempdir().unwrap();
    let (mut producer, ring) = ring(4);
    let rotating = Policy {
        every: Some(Duration::ZERO),
        flush: Duration::ZERO,
        ..policy(dir.path())
    };
    let mut disk = disk((&mut producer, &ring), rotating);
    let mut look = |producer: &mut Producer| {
        producer.commit();
        disk.step(Instant::now()).unwrap();
    };
    let (mut count, rounds) = (0, 6);
    for round in 0..rounds {
        for _ in 0..3 {
            assert!(push(&mut producer, count, 1000));
            count += 1;
        }
        look(&mut producer);
        let there = numbers(dir.path());
        assert!(there.into_iter().eq(0..count), "what came is on the disk");
        // A silence, now and then a long one.
        for _ in 0..round * 5 + 2 {
            look(&mut producer);
        }
    }
    producer.end();
    let written = disk.finish(&[]).unwrap();
    assert_eq!((written.files, written.packets), (rounds, count), "{written:?}");
    for file in files(dir.path()) {
        assert_eq!(packets(&std::fs::read(file).unwrap()).len(), 3);
    }
    assert!(numbers(dir.path()).into_iter().eq(0..count));
}

/// Files that end by time while much goes by, too, have every packet once.
#[test]
fn files_end_at_their_time_on_a_busy_link() {
    let dir = tempfile::tempdir().unwrap();
    let (mut producer, ring) = ring(4);
    let rotating = Policy {
        every: Some(Duration::ZERO),
        flush: Duration::ZERO,
        ..policy(dir.path())
    };
    let mut disk = disk((&mut producer, &ring), rotating);
    for number in 0..2000 {
        while !push(&mut producer, number, 1000) {
            disk.step(Instant::now()).unwrap();
        }
        if number % 100 < 70 {
            producer.commit();
            if number % 7 == 0 {
                disk.step(Instant::now()).unwrap();
            }
        }
    }
    producer.end();
    let written = disk.finish(&[]).unwrap();
    assert!(written.files > 5 && written.packets == 2000, "{written:?}");
    for file in files(dir.path()) {
        assert_ne!(packets(&std::fs::read(file).unwrap()).len(), 0);
    }
    assert!(numbers(dir.path()).into_iter().eq(0..2000));
}

#[test]
fn closed_files_are_compressed() {
    let dir = tempfile::tempdir().unwrap();
    let (mut producer, ring) = ring(4);
    let rotating = Policy {
        size: Some(u64::from(SEGMENT_MIN) * 2 + 4096),
        compress: true,
        ..policy(dir.path())
    };
    // One that cannot be compressed stays as it is.
    let in_the_way = dir.path().join("00002.pcapng.zst.part/x");
    std::fs::create_dir_all(&in_the_way).unwrap();
    let mut disk = disk((&mut producer, &ring), rotating);
    fill(&mut producer, &mut disk, 2000);
    let written = disk.finish(&[]).unwrap();
    let packed = written.packed.clone().unwrap();
    assert_eq!(
        (packed.files, packed.failed),
        (written.files - 1, 1),
        "{written:?}"
    );
    assert!(packed.bytes < written.bytes / 4, "{written:?}");
    std::fs::remove_dir_all(in_the_way.parent().unwrap()).unwrap();
    assert_eq!(written.kept, files(dir.path()));
    unpack(dir.path());
    assert!(numbers(dir.path()).into_iter().eq(0..2000));
}

/// Compresses nothing any more: what is there is as it was captured.
fn unpack(dir: &Path) {
    let is_packed = |path: &PathBuf| path.extension().unwrap() == "zst";
    for path in files(dir).into_iter().filter(is_packed) {
        let plain = zstd::decode_all(std::fs::File::open(&path).unwrap()).unwrap();
        std::fs::write(path.with_extension(""), plain).unwrap();
        std::fs::remove_file(path).unwrap();
    }
}

/// Whether their turn to be compressed had come or not.
#[test]
fn the_newest_files_are_kept_and_compressed() {
    let dir = tempfile::tempdir().unwrap();
    let (mut producer, ring) = ring(4);
    let rotating = Policy {
        size: Some(u64::from(SEGMENT_MIN) * 2 + 4096),
        files: Some(3),
        compress: true,
        ..policy(dir.path())
    };
    let mut disk = disk((&mut producer, &ring), rotating);
    for number in 0..5000 {
        fill_with(&mut producer, &mut disk, number..number + 1);
        // Those that are not compressed yet are not there beside the newest three.
        let is_raw = |path: &&PathBuf| path.extension().unwrap() == "pcapng";
        assert!(number % 100 > 0 || files(dir.path()).iter().filter(is_raw).count() <= 3);
    }
    producer.end();
    let written = disk.finish(&[]).unwrap();
    let packed = written.packed.clone().unwrap();
    assert!(
        (3..=written.files).contains(&packed.files) && packed.failed == 0,
        "{written:?}"
    );
    let kept = files(dir.path());
    assert_eq!((kept.len(), &written.kept), (3, &kept));
    assert!(kept.iter().all(|path| path.extension().unwrap() == "zst"));
    unpack(dir.path());
    let numbers = numbers(dir.path());
    assert!(numbers.iter().copied().eq(5000 - numbers.len() as u64..5000));
}

/// Removed first: compressing needs room beside what is there.
#[test]
fn what_goes_at_once_is_not_compressed_before() {
    let dir = tempfile::tempdir().unwrap();
    let (mut producer, ring) = ring(4);
    let rotating = Policy {
        size: Some(u64::from(SEGMENT_MIN) * 2 + 4096),
        files: Some(1),
        compress: true,
        ..policy(dir.path())
    };
    let mut disk = disk((&mut producer, &ring), rotating);
    fill(&mut producer, &mut disk, 2000);
    let written = disk.finish(&[]).unwrap();
    let packed = written.packed.clone().unwrap();
    assert_eq!((packed.files, packed.failed), (1, 0), "{written:?}");
    assert_eq!(written.kept, files(dir.path()));
}

/// A disk that is full for a while: what the ring held meanwhile is written when there is room again.
#[test]
fn a_full_disk_loses_nothing_that_the_ring_can_hold() {
    full_for_a_while(true);
}

/// There is room again just before the end.
#[test]
fn a_full_disk_is_asked_once_more_at_the_end() {
    full_for_a_while(false);
}

fn full_for_a_while(is_awaited: bool) {
    if !nix::unistd::geteuid().is_root() {
        return crate::skip::skip("needs leave to mount (root)");
    }
    let dir = tempfile::tempdir().unwrap();
    let _disk = Mount::disk("1m", dir.path());
    let (mut producer, ring) = ring(16);
    let mut disk = disk((&mut producer, &ring), policy(dir.path()));
    let mut count = 0;
    while push(&mut producer, count, 1000) {
        count += 1;
        producer.commit();
        if count % 100 == 0 {
            disk.step(Instant::now()).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    // On a busy machine the kernel has not begun to write by then.
    let begun = Instant::now();
    while disk.written().errors == 0 && begun.elapsed() < Duration::from_secs(20) {
        disk.step(Instant::now()).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(disk.written().errors > 0, "{:?}", disk.written());
    let mut grow = Command::new("mount");
    grow.args(["-o", "remount,size=8m"]).arg(dir.path());
    assert!(grow.status().unwrap().success());
    producer.end();
    let begun = Instant::now();
    while is_awaited && disk.written().packets < count / 2 && begun.elapsed() < Duration::from_secs(20) {
        disk.step(Instant::now()).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    let written = disk.finish(&[]).unwrap();
    let there = numbers(dir.path());
    assert_eq!((written.packets, written.lost), (count, 0), "{written:?}");
    assert!(there.into_iter().eq(0..count));
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

/// As many files as are kept fill the disk: there is room for the next once the oldest has gone.
#[test]
fn the_oldest_file_makes_room_for_the_next() {
    let size = u64::from(SEGMENT_MIN) * 2 + 4096;
    on_a_tiny_disk(3 * size, |path| {
        let (mut producer, ring) = ring(16);
        let rotating = Policy {
            size: Some(size),
            files: Some(3),
            ..policy(path)
        };
        let mut disk = disk((&mut producer, &ring), rotating);
        let mut count = 0;
        while disk.written().files < 8 && disk.written().errors == 0 {
            count += u64::from(push(&mut producer, count, 1000));
            producer.commit();
            disk.step(Instant::now()).unwrap();
        }
        producer.end();
        let written = disk.finish(&[]).unwrap();
        assert_eq!((written.packets, written.errors), (count, 0), "{written:?}");
        assert!(files(path).len() <= 3, "{:?}", files(path));
    });
}

/// What is in the way of the next file costs none that is there; and what could not be removed is removed later.
#[test]
fn no_file_is_removed_for_one_that_cannot_be_begun() {
    let dir = tempfile::tempdir().unwrap();
    let name = |number| dir.path().join(format!("{number:05}.pcapng"));
    let (mut producer, ring) = ring(16);
    let rotating = Policy {
        every: Some(Duration::from_secs(60)),
        files: Some(1),
        ..policy(dir.path())
    };
    let mut disk = disk((&mut producer, &ring), rotating);
    std::fs::create_dir(name(2)).unwrap();
    let begun = Instant::now();
    let mut step = |disk: &mut Disk, minute: u64| {
        fill_with(&mut producer, disk, 0..500);
        let now = begun + Duration::from_secs(61 * minute);
        disk.step(now).unwrap();
        while disk.is_busy() {
            disk.step(now).unwrap();
        }
    };
    (1..4).for_each(|minute| step(&mut disk, minute));
    assert!(disk.written().errors > 0 && name(1).exists());
    std::fs::remove_dir(name(2)).unwrap();
    // A directory is not removed as a file.
    std::fs::remove_file(name(1)).unwrap();
    std::fs::create_dir(name(1)).unwrap();
    (4..7).for_each(|minute| step(&mut disk, minute));
    assert!(disk.written().files > 1 && name(1).exists());
    std::fs::remove_dir(name(1)).unwrap();
    std::fs::write(name(1), "").unwrap();
    (7..9).for_each(|minute| step(&mut disk, minute));
    assert!(!name(1).exists());
    producer.end();
    let written = disk.finish(&[]).unwrap();
    assert_eq!(written.kept, [name(written.files)]);
}

/// The name of each attempt is another, as where it has the time in it.
#[test]
fn a_file_that_cannot_be_begun_leaves_nothing() {
    on_a_tiny_disk(1 << 20, |path| {
        let (mut producer, ring) = ring(4);
        let (dir, attempts) = (path.to_owned(), AtomicU64::new(0));
        let rotating = Policy {
            every: Some(Duration::from_secs(60)),
            name: Box::new(move |_| dir.join(format!("{:05}", attempts.fetch_add(1, Relaxed)))),
            ..policy(path)
        };
        let mut disk = disk((&mut producer, &ring), rotating);
        fill_with(&mut producer, &mut disk, 0..500);
        while disk.written().packets == 0 || disk.is_busy() {
            disk.step(Instant::now()).unwrap();
        }
        let others = path.join("others");
        let full = std::fs::write(&others, vec![1; 2 << 20]).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        let begun = Instant::now();
        for minute in 1..6 {
            // Enough for a segment to be closed.
            for _ in 0..150 {
                push(&mut producer, 500, 1000);
            }
            producer.commit();
            let now = begun + Duration::from_secs(61 * minute);
            disk.step(now).unwrap();
            while disk.is_busy() {
                disk.step(now).unwrap();
            }
        }
        assert!(disk.written().errors > 1, "{:?}", disk.written());
        let there = files(path);
        assert_eq!(there.len(), 2, "the first, and others': {there:?}");
    });
}

/// What others remove or cut off while it is written is told, and how much that is.
#[test]
fn what_others_took_away_is_told() {
    for is_removed in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (mut producer, ring) = ring(16);
        let mut disk = disk((&mut producer, &ring), policy(dir.path()));
        fill_with(&mut producer, &mut disk, 0..1000);
        // A write under way makes the file as long as it was.
        while disk.written().packets == 0 || disk.is_busy() {
            disk.step(Instant::now()).unwrap();
        }
        let path = dir.path().join("00001.pcapng");
        if is_removed {
            std::fs::remove_file(&path).unwrap();
        } else {
            std::fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(0)
                .unwrap();
        }
        fill_with(&mut producer, &mut disk, 1000..3000);
        producer.end();
        let written = disk.finish(&[]).unwrap();
        let [(short, missing)] = &written.short[..] else {
            panic!("{written:?}");
        };
        assert_eq!(*short, path);
        assert!(*missing >= 1000 && *missing <= written.bytes, "{written:?}");
    }
}

/// Also where so little comes that parts of a segment are written: they make the file as long as it was, and a hole has a length.
#[test]
fn what_others_cut_off_is_told_on_a_quiet_link() {
    let dir = tempfile::tempdir().unwrap();
    let (mut producer, ring) = ring(16);
    let mut disk = disk((&mut producer, &ring), policy(dir.path()));
    let path = dir.path().join("00001.pcapng");
    let len = || path.metadata().unwrap().len();
    let mut now = Instant::now();
    let mut grow_beyond = |before: u64, number: u64| {
        assert!(push(&mut producer, number, 1000));
        producer.commit();
        while len() <= before {
            now += Duration::from_millis(600);
            disk.step(now).unwrap();
        }
    };
    let head = len();
    grow_beyond(head, 0);
    let file = std::fs::File::options().write(true).open(&path);
    file.unwrap().set_len(0).unwrap();
    grow_beyond(head, 1);
    producer.end();
    let written = disk.finish(&[]).unwrap();
    assert!(
        matches!(&written.short[..], [(short, missing)] if *short == path && *missing >= head),
        "{written:?}"
    );
}

/// What an earlier capture left compressed under such a name is none of this one.
#[test]
fn files_have_the_names_that_this_capture_gave_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("00001.pcapng");
    std::fs::write(dir.path().join("00001.pcapng.zst"), "older").unwrap();
    let (mut producer, ring) = ring(16);
    let mut disk = disk((&mut producer, &ring), policy(dir.path()));
    fill_with(&mut producer, &mut disk, 0..10);
    producer.end();
    assert_eq!(disk.finish(&[]).unwrap().kept, [path]);
}

/// Also where the disk has no room for the end of the file, which it gets back only when that is closed.
#[test]
fn what_others_took_away_is_told_on_a_full_disk_too() {
    on_a_tiny_disk(1 << 20, |path| {
        let (mut producer, ring) = ring(16);
        let mut disk = disk((&mut producer, &ring), policy(path));
        fill_with(&mut producer, &mut disk, 0..500);
        while disk.written().packets == 0 || disk.is_busy() {
            disk.step(Instant::now()).unwrap();
        }
        let file = path.join("00001.pcapng");
        std::fs::remove_file(&file).unwrap();
        std::fs::write(path.join("others"), vec![1; 2 << 20]).unwrap_err();
        producer.end();
        let written = disk.finish(&[0; 8192]).unwrap();
        assert!(written.errors > 0, "{written:?}");
        assert_eq!(written.short, [(file, written.bytes)], "{written:?}");
    });
}

/// The kernel takes it into its cache, and finds out later that the disk has no place for it.
#[test]
fn what_the_disk_refuses_late_is_told() {
    on_a_tiny_disk(8 << 20, |path| {
        let (image, inner) = (path.join("image"), path.join("inner"));
        std::fs::create_dir(&inner).unwrap();
        std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let is_done = |command: &mut Command| command.status().is_ok_and(|status| status.success());
        let mut make = Command::new("mkfs.ext4");
        let mut mount = Command::new("mount");
        if !is_done(make.args(["-q", "-F", "-O", "^has_journal"]).arg(&image))
            || !is_done(mount.args(["-o", "loop"]).args([&image, &inner]))
        {
            return crate::skip::skip("needs mkfs.ext4 and loop devices");
        }
        let (mut producer, ring) = ring(16);
        let mut disk = disk((&mut producer, &ring), policy(&inner));
        // Its image has holes, and nothing is left to fill them.
        std::fs::write(path.join("others"), vec![1; 16 << 20]).unwrap_err();
        fill_with(&mut producer, &mut disk, 0..50);
        producer.end();
        let written = disk.finish(&[]);
        let _ = Command::new("umount").arg(&inner).status();
        let written = written.unwrap();
        assert_eq!((written.packets, written.lost), (50, 0), "{written:?}");
        let file = inner.join("00001.pcapng");
        assert_eq!(written.short, [(file, written.bytes)], "{written:?}");
        assert_eq!(written.errors, 1, "{written:?}");
    });
}

/// Whoever could read what was there cannot read the packets.
#[test]
fn a_file_that_is_there_is_its_owners_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("00001.pcapng");
    std::fs::write(&path, "what was there").unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let (mut producer, ring) = ring(4);
    let disk = disk((&mut producer, &ring), policy(dir.path()));
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    producer.end();
    assert_eq!(disk.finish(&[]).unwrap().files, 1);
}

/// Whoever put it there could read along.
#[test]
fn a_file_of_another_user_is_an_error_and_stays() {
    const OTHER: u32 = 65534;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("00001.pcapng");
    std::fs::write(&path, "theirs").unwrap();
    if std::os::unix::fs::chown(&path, Some(OTHER), None).is_err() {
        return crate::skip::skip("needs leave to give a file away (root)");
    }
    let (mut producer, ring) = ring(4);
    let (_, page) = ring.seat(true).unwrap();
    producer.commit();
    let consumer = Consumer::new(ring.file(), page).unwrap();
    let error = Disk::new(ring.clone(), consumer, policy(dir.path()))
        .err()
        .unwrap();
    assert_eq!(error.to_string(), "it is a file of user 65534's");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
    // Of whoever called sudo it is as good as ours.
    let given = Policy {
        owner: Some((OTHER, OTHER)),
        ..policy(dir.path())
    };
    let disk = disk((&mut producer, &ring), given);
    producer.end();
    assert_eq!(disk.finish(&[]).unwrap().files, 1);
}

#[test]
fn a_file_that_cannot_be_is_an_error_at_once() {
    let (mut producer, ring) = ring(4);
    let (_, page) = ring.seat(true).unwrap();
    producer.commit();
    let consumer = Consumer::new(ring.file(), page).unwrap();
    assert!(Disk::new(ring.clone(), consumer, policy(Path::new("/nonexistent"))).is_err());
}

/// A file has one writer, also each of several; what another one writes already stays as it is.
#[test]
fn a_file_that_another_one_writes_is_an_error_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (mut producer, ring) = ring(4);
    let first = disk((&mut producer, &ring), policy(dir.path()));
    let second = || {
        let (_, page) = ring.seat(true).unwrap();
        let consumer = Consumer::new(ring.file(), page).unwrap();
        Disk::new(ring.clone(), consumer, policy(dir.path()))
    };
    let before = std::fs::read(dir.path().join("00001.pcapng")).unwrap();
    let error = second().err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some("another process writes it"));
    assert_eq!(std::fs::read(dir.path().join("00001.pcapng")).unwrap(), before);
    producer.end();
    assert_eq!(first.finish(&[]).unwrap().files, 1);
    assert!(second().is_ok(), "it is nobody's any more");
}
