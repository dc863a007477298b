//! Files that are cut off, changed or made up: what is read of them is drawn, or refused by one line; nothing else.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use measure::Histogram;
use report::compare::export;
use report::{RunDir, Style, html, input, load, terminal};
use serde_json::json;

const OLDER: &str = "time,tx_packets,rx_packets,drop_rate,avg_latency\n";

/// A run of each kind with all of its files, and an older file plain and packed; each is named as a user would.
fn runs(base: &Path) -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut runs = Vec::new();
    for name in ["v1", "v1/reflect", "search", "rfc2544", "compare"] {
        let run = base.join(name.replace('/', "-"));
        fs::create_dir(&run).unwrap();
        for entry in fs::read_dir(golden.join(name)).unwrap().map(Result::unwrap) {
            if entry.path().is_file() {
                fs::copy(entry.path(), run.join(entry.file_name())).unwrap();
            }
        }
        fs::write(
            run.join("host.json"),
            json!({"cpu": "x86", "cores": 2}).to_string(),
        )
        .unwrap();
        runs.push(run);
    }
    let mut histogram = Histogram::new(5);
    (1..2000).for_each(|n| histogram.record(n * n, n));
    let send = RunDir::reopen(&runs[0]);
    send.write_latency(&histogram).unwrap();
    send.write_pacing(&histogram, 0.5).unwrap();
    send.write_json(
        "doctor.json",
        &json!({"version": 1, "findings": [{"id": "governor"}]}),
    )
    .unwrap();
    let rows = "10,100,90,10,0.5\n20,100,110,0,0.25\n30,0,0,,\n";
    let reflected = format!("time,rx_packets,tx_packets,dropped\n{}", "10,5,4,1\n20,5,5,0\n");
    fs::write(runs[1].join("intervals.csv"), reflected).unwrap();
    for (name, text) in [
        ("older.csv", format!("{OLDER}{rows}").into_bytes()),
        (
            "older.csv.zst",
            zstd::encode_all(format!("{OLDER}{rows}").as_bytes(), 1).unwrap(),
        ),
    ] {
        fs::write(base.join(name), text).unwrap();
        runs.push(base.join(name));
    }
    runs
}

/// What the report says of `path`: drawn in every form without anything that could get at a terminal, or why not.
fn report(path: &Path) -> Result<String, String> {
    let run = load::load(path).map_err(|error| error.to_string())?;
    let runs = [run];
    let text = terminal::runs(&runs, &Style::plain()) + &export::csv(&runs);
    assert!(
        text.lines().all(|line| !line.contains(input::is_unsafe)),
        "{text:?}"
    );
    serde_json::to_string(&export::object(&runs, &[])).unwrap();
    html::page(&runs).unwrap();
    Ok(text)
}

fn refused(path: &Path) -> String {
    let line = report(path).expect_err("it is damaged");
    assert!(!line.contains(input::is_unsafe), "{line:?}");
    line
}

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
    for _ in 0..=random.below(3) {
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
                .chain((0..3000).map(|_| changed(&whole, &mut random)))
                .collect();
            for bytes in changes {
                fs::write(&file, &bytes).unwrap();
                match catch_unwind(AssertUnwindSafe(|| report(&run))) {
                    Ok(Ok(_)) => drawn += 1,
                    Ok(Err(line)) => {
                        refused += 1;
                        assert!(!line.contains(input::is_unsafe) && !line.is_empty(), "{line:?}");
                    }
                    Err(_) => panic!("{}: {:?}", file.display(), String::from_utf8_lossy(&bytes)),
                }
            }
            fs::write(&file, &whole).unwrap();
        }
    }
    println!("{drawn} drawn, {refused} refused");
    assert!(drawn > 100 && refused > 100, "{drawn} drawn, {refused} refused");
}
