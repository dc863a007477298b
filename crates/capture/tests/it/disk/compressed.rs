//! Files that are compressed when they are closed.

use super::*;

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
