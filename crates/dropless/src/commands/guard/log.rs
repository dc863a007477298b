//! The log of a guard in its run directory, an event a line: the newest ones, for as many months as it runs.
//!
//! Where the file is full it becomes the older one, whose place it takes; what that held is counted, and the first line of the
//! new one says how many events are in neither. An operator asks what happened last night, and a disk has an end.

use std::fs;
use std::io;

use report::ours;
use report::rundir::{RunDir, WriteError};
use serde::Serialize;

/// The events since the last turn, and those before them.
const FILES: [&str; 2] = ["guard.jsonl", "guard.1.jsonl"];
/// Bytes of each: of common rules some 40,000 events.
const BYTES_MAX: u64 = 16 << 20;

/// Its two files.
pub struct Log {
    dir: RunDir,
    most: u64,
    /// Of the newer one.
    bytes: u64,
    events: [u64; FILES.len()],
    /// Events that the files had, and that are in neither any more.
    pub left_out: u64,
    /// Events that could not be written.
    pub missing: u64,
    /// Why the first of them could not.
    cause: String,
}

/// What the first line of a file says where there were others before.
#[derive(Serialize)]
#[serde(tag = "event", rename = "left_out")]
struct LeftOut {
    events: u64,
}

impl Log {
    pub fn new(dir: &RunDir) -> Self {
        Self {
            dir: dir.clone(),
            most: BYTES_MAX,
            bytes: 0,
            events: [0; FILES.len()],
            left_out: 0,
            missing: 0,
            cause: String::new(),
        }
    }

    /// One more line.
    pub fn write(&mut self, event: &impl Serialize) -> io::Result<()> {
        let written = self.put(event);
        if let Err(error) = &written {
            if self.missing == 0 {
                self.cause = error.to_string();
            }
            self.missing += 1;
        }
        written
    }

    /// Tells the run's directory what could not be written.
    pub fn finish(&self) {
        let rows = self.left_out + self.events.iter().sum::<u64>() + self.missing;
        let lacks = WriteError::Rows {
            name: FILES[0].to_owned(),
            lost: self.missing,
            rows,
            cause: self.cause.clone(),
        };
        if self.missing > 0 {
            let _ = self.dir.keep::<()>(Err(lacks));
        }
    }

    fn put(&mut self, event: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_string(event)? + "\n";
        if self.bytes > 0 && self.bytes + line.len() as u64 > self.most {
            self.turn()?;
        }
        if self.bytes == 0 && self.left_out > 0 {
            let first = LeftOut {
                events: self.left_out,
            };
            line = serde_json::to_string(&first)? + "\n" + &line;
        }
        let mut file = ours::append(&self.dir.file(FILES[0]))?;
        let len = file.metadata()?.len();
        ours::add(&mut file, len, line.as_bytes())?;
        self.bytes += line.len() as u64;
        self.events[0] += 1;
        Ok(())
    }

    fn turn(&mut self) -> io::Result<()> {
        match fs::rename(self.dir.file(FILES[0]), self.dir.file(FILES[1])) {
            // Somebody took it away: what was in it is in no file of ours, and the next one begins.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.left_out += self.events[0];
                self.events[0] = 0;
            }
            turned => {
                turned?;
                self.left_out += self.events[1];
                self.events = [0, self.events[0]];
            }
        }
        self.bytes = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lines(log: &Log, at: usize) -> Vec<Value> {
        let text = fs::read_to_string(log.dir.file(FILES[at])).unwrap();
        assert!(text.len() as u64 <= log.most, "{} bytes", text.len());
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn the_newest_events_stay_and_the_others_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log {
            most: 1000,
            ..Log::new(&RunDir::reopen(dir.path()))
        };
        for number in 0..1000_u64 {
            log.write(&json!({"event": "blocked", "number": number})).unwrap();
            let newer = lines(&log, 0);
            let older = if number < 40 { Vec::new() } else { lines(&log, 1) };
            let told: Vec<&Value> = older.iter().chain(&newer).collect();
            let kept: Vec<u64> = told.iter().filter_map(|line| line["number"].as_u64()).collect();
            let last: Vec<u64> = (log.left_out..=number).collect();
            assert!(number < 40 || kept == last, "{number}: {kept:?} {}", log.left_out);
            let is_told = newer[0] == json!({"event": "left_out", "events": log.left_out});
            assert_eq!(is_told, log.left_out > 0, "{number}");
        }
        assert!(log.left_out > 900);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), FILES.len());
    }

    #[test]
    fn an_event_that_is_longer_than_a_file_is_written_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log {
            most: 10,
            ..Log::new(&RunDir::reopen(dir.path()))
        };
        for _ in 0..3 {
            log.write(&json!({"event": "longer than ten bytes"})).unwrap();
        }
        assert_eq!((log.events, log.left_out), ([1, 1], 1));
    }

    #[test]
    fn what_could_not_be_written_is_told_and_the_log_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::reopen(dir.path());
        let mut log = Log::new(&run);
        let path = run.file(FILES[0]);
        fs::create_dir(&path).unwrap();
        for _ in 0..2 {
            log.write(&json!({"event": "blocked"})).unwrap_err();
        }
        fs::remove_dir(&path).unwrap();
        log.write(&json!({"event": "expired"})).unwrap();
        log.finish();
        assert_eq!(lines(&log, 0), [json!({"event": "expired"})]);
        let note = run.note().unwrap();
        assert_eq!(note.code, "directory_incomplete");
        let lacks = "guard.jsonl: 2 of 3 rows are missing: Is a directory (os error 21)";
        assert!(note.text.ends_with(lacks), "{}", note.text);
    }
}
