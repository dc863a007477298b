//! Files that others have too: who takes them away, cuts them off, owns or writes them.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use super::*;

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
