//! A disk that has no room, or a place where no file can be.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::*;

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
