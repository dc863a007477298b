//! What is in the files, and where each of them ends.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use capture::disk::{Policy, Written};
use capture::pcapng::Statistics;
use capture::ring::layout::SEGMENT_MIN;

use super::*;

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

/// A link on which little goes by: files end by time all the same, each with packets, also long before the next flush.
#[test]
fn files_end_at_their_time_on_a_quiet_link() {
    for flush in [Duration::ZERO, Duration::from_secs(3600)] {
        files_end_at_their_time(flush);
    }
}

fn files_end_at_their_time(flush: Duration) {
    let dir = tempfile::tempdir().unwrap();
    let (mut producer, ring) = ring(4);
    let rotating = Policy {
        every: Some(Duration::ZERO),
        flush,
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
