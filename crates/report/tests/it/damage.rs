//! Files that are cut off or changed anywhere: what is read of them is drawn, or refused by one line; nothing else.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crate::common::files::{report, runs};
use report::input;

/// Small, the same everywhere, and good enough to choose places (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len())]
    }
}

/// The file with one or a few things wrong with it.
fn changed(whole: &[u8], random: &mut Random) -> Vec<u8> {
    const NUMBERS: [&str; 9] = [
        "0",
        "-1",
        "1e308",
        "-1e308",
        "1e-300",
        "18446744073709551615",
        "9007199254740992",
        "1000000000000",
        "null",
    ];
    let mut bytes = whole.to_vec();
    for _ in 0..=random.below(2) {
        let at = random.below(bytes.len());
        let digits = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = *random.of(b"\x1b\0\n,\"{}[]:-9 \xff"),
            3 => drop(bytes.drain(at..(at + random.below(40)).min(bytes.len()))),
            4 => bytes
                .splice(at..at, whole[..random.below(80).min(whole.len())].to_vec())
                .for_each(drop),
            // The number that begins next becomes an absurd one.
            _ => {
                let Some(from) = bytes[at..].iter().position(digits).map(|n| at + n) else {
                    continue;
                };
                let to = bytes[from..].iter().position(|byte| !digits(byte));
                let to = to.map_or(bytes.len(), |n| from + n);
                bytes.splice(from..to, random.of(&NUMBERS).bytes()).for_each(drop);
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

#[test]
fn whatever_is_wrong_is_drawn_or_refused_by_one_line() {
    let base = tempfile::tempdir().unwrap();
    let mut random = Random(0x2026_1121);
    let (mut drawn, mut refused) = (0, 0);
    for run in runs(base.path()) {
        assert!(report(&run).is_ok(), "{run:?}: {:?}", report(&run));
        let files: Vec<PathBuf> = match fs::read_dir(&run) {
            Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
            Err(_) => vec![run.clone()],
        };
        for file in files {
            let whole = fs::read(&file).unwrap();
            let cuts = (0..24).map(|part| whole[..whole.len() * part / 24].to_vec());
            let changes: Vec<Vec<u8>> = cuts
                .chain((0..60).map(|_| changed(&whole, &mut random)))
                .collect();
            for bytes in changes {
                fs::write(&file, &bytes).unwrap();
                match catch_unwind(AssertUnwindSafe(|| report(&run))) {
                    Ok(Ok(_)) => drawn += 1,
                    Ok(Err(line)) => {
                        refused += 1;
                        assert!(!line.contains(input::is_unsafe) && !line.is_empty(), "{line:?}");
                    }
                    Err(panic) => {
                        let bytes = String::from_utf8_lossy(&bytes);
                        panic!("{}: {panic:?}: {bytes:?}", file.display())
                    }
                }
            }
            fs::write(&file, &whole).unwrap();
        }
    }
    println!("{drawn} drawn, {refused} refused");
    assert!(drawn > 100 && refused > 100, "{drawn} drawn, {refused} refused");
}
