//! Streams rows into a file from a thread of its own, so that a slow or full disk never holds up who measures.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use crate::ours;
use crate::rundir::WriteError;

/// Rows are gathered up to this many bytes for one write while more are waiting.
const GATHERED_MAX: usize = 256 * 1024;

/// What is written as one row, or as several that belong together.
pub trait Row: Send + 'static {
    /// Adds whole lines to `text`.
    fn write(&self, text: &mut String) -> fmt::Result;
}

impl Row for String {
    fn write(&self, text: &mut String) -> fmt::Result {
        text.write_str(self)
    }
}

/// Sends rows to the thread that makes them into text and writes them.
#[derive(Debug)]
pub struct RowWriter<R> {
    name: String,
    rows: u64,
    refused: u64,
    to_disk: Option<SyncSender<R>>,
    thread: Option<JoinHandle<Written>>,
}

/// What became of the rows that reached the thread.
#[derive(Debug, Default)]
struct Written {
    lost: u64,
    headless: bool,
    first: Option<io::Error>,
}

impl<R: Row> RowWriter<R> {
    /// Makes the file `path`, writes `header` (with its newline), and starts the thread. At most `waiting_max` rows
    /// wait for the disk.
    /// A header that does not fit is told at the end, with the rows: the disk may have room by then.
    pub fn create(path: &Path, header: &str, waiting_max: usize) -> Result<Self, WriteError> {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let failed = |cause| WriteError::Io(name.clone(), cause);
        let file = ours::create(path).map_err(failed)?;
        Self::onto(Whole::new(file), name.clone(), header, waiting_max).map_err(failed)
    }

    fn onto<S: RowSink + Send + 'static>(
        sink: S,
        name: String,
        header: &str,
        waiting_max: usize,
    ) -> io::Result<Self> {
        let (to_disk, from_control) = sync_channel(waiting_max);
        let header = header.to_owned();
        let thread = thread::Builder::new()
            .name("rows-to-disk".to_owned())
            .spawn(move || write_until_closed(sink, header, &from_control))?;
        Ok(Self {
            name,
            rows: 0,
            refused: 0,
            to_disk: Some(to_disk),
            thread: Some(thread),
        })
    }

    /// Hands over one row, and never waits: when the disk is too far behind, the row is counted as lost.
    pub fn push(&mut self, row: R) {
        self.rows += 1;
        let sent = self.to_disk.as_ref().map(|to_disk| to_disk.try_send(row));
        if !matches!(sent, Some(Ok(()))) {
            debug_assert!(
                !matches!(sent, Some(Err(TrySendError::Disconnected(_)))),
                "the thread outlives us"
            );
            self.refused += 1;
        }
    }

    /// Waits until every row that was handed over is in the file, or known not to be.
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.to_disk = None;
        let written = match self.thread.take().map(JoinHandle::join) {
            Some(Ok(written)) => written,
            _ => Written {
                lost: self.rows,
                headless: true,
                first: Some(io::Error::other("the writing thread died")),
            },
        };
        let lost = written.lost + self.refused;
        if lost == 0 && !written.headless {
            return Ok(());
        }
        Err(WriteError::Rows {
            name: std::mem::take(&mut self.name),
            lost,
            rows: self.rows,
            cause: written
                .first
                .map_or_else(|| "the disk is too slow".to_owned(), |error| error.to_string()),
        })
    }
}

impl<R> Drop for RowWriter<R> {
    /// Without `finish` (a panic, an early return) what was handed over still reaches the file.
    fn drop(&mut self) {
        self.to_disk = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Takes whole rows.
trait RowSink {
    /// Writes `rows` whole, or leaves no part of them behind.
    fn put(&mut self, rows: &[u8]) -> io::Result<()>;
}

/// A file that is cut back to its last whole row when a write stops half way.
struct Whole {
    file: File,
    len: u64,
}

impl Whole {
    fn new(file: File) -> Self {
        Self { file, len: 0 }
    }
}

impl RowSink for Whole {
    fn put(&mut self, rows: &[u8]) -> io::Result<()> {
        ours::add(&mut self.file, self.len, rows)?;
        self.len += rows.len() as u64;
        Ok(())
    }
}

/// Rows on their way to the file, many in one write when many wait.
struct Gathering<S> {
    sink: S,
    /// Until it is in the file.
    header: Option<String>,
    text: String,
    rows: u64,
    written: Written,
}

/// Writes rows as they come: whenever nothing waits, the file is complete so far.
fn write_until_closed<S: RowSink, R: Row>(sink: S, header: String, rows: &Receiver<R>) -> Written {
    let mut gathering = Gathering::new(sink, header);
    loop {
        gathering.put();
        let Ok(row) = rows.recv() else {
            return gathering.written;
        };
        gathering.add(&row);
        while gathering.text.len() < GATHERED_MAX {
            match rows.try_recv() {
                Ok(row) => gathering.add(&row),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
    }
}

impl<S: RowSink> Gathering<S> {
    fn new(sink: S, header: String) -> Self {
        Self {
            sink,
            header: Some(header),
            text: String::with_capacity(GATHERED_MAX),
            rows: 0,
            written: Written::default(),
        }
    }

    fn add<R: Row>(&mut self, row: &R) {
        // A `String` takes everything.
        let _ = row.write(&mut self.text);
        self.rows += 1;
    }

    /// Puts the header, if it is still to be put, and then the rows; without a header no row is of use.
    fn put(&mut self) {
        let title = match self.header.take() {
            None => Ok(()),
            Some(line) => self
                .sink
                .put(line.as_bytes())
                .inspect_err(|_| self.header = Some(line)),
        };
        if let Err(error) = title.and_then(|()| self.sink.put(self.text.as_bytes())) {
            self.written.lost += self.rows;
            self.written.first.get_or_insert(error);
        }
        self.written.headless = self.header.is_some();
        self.text.clear();
        self.rows = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn row(number: u64) -> String {
        format!("{number}\n")
    }

    #[test]
    fn every_row_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("intervals.csv");
        let mut writer = RowWriter::create(&path, "number\n", 32_768).unwrap();
        (0..20_000).for_each(|number| writer.push(row(number)));
        writer.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let expected: String = std::iter::once("number\n".to_owned())
            .chain((0..20_000).map(|n| format!("{n}\n")))
            .collect();
        assert_eq!(text, expected);
    }

    /// What a reader, or a `kill -9`, finds while the run goes: every row handed over a moment ago.
    #[test]
    fn rows_do_not_wait_for_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("intervals.csv");
        let mut writer = RowWriter::create(&path, "number\n", 16).unwrap();
        writer.push(row(1));
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while std::fs::read_to_string(&path).unwrap() != "number\n1\n" {
            assert!(std::time::Instant::now() < deadline, "the row is not in the file");
            thread::sleep(std::time::Duration::from_millis(1));
        }
        writer.finish().unwrap();
    }

    #[test]
    fn dropped_without_finish_it_is_still_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("intervals.csv");
        let mut writer = RowWriter::create(&path, "number\n", 32_768).unwrap();
        writer.push(row(1));
        drop(writer);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "number\n1\n");
    }

    #[test]
    fn a_full_device_is_told_at_the_end() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut writer = RowWriter::onto(Whole::new(full), "full".into(), "number\n", 32_768).unwrap();
        (0..10).for_each(|number| writer.push(row(number)));
        let error = writer.finish().unwrap_err().to_string();
        assert!(
            error.starts_with("full: 10 of 10 rows are missing: No space left"),
            "{error}"
        );
    }

    /// Fails when told to, and shows what it holds.
    #[derive(Clone, Default)]
    struct Fickle(Arc<Mutex<(bool, Vec<u8>)>>);

    impl RowSink for Fickle {
        fn put(&mut self, rows: &[u8]) -> io::Result<()> {
            let mut inner = self.0.lock().unwrap();
            if inner.0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            inner.1.extend_from_slice(rows);
            Ok(())
        }
    }

    #[test]
    fn a_disk_that_has_room_again_gets_the_header_first() {
        let sink = Fickle::default();
        sink.0.lock().unwrap().0 = true;
        let mut gathering = Gathering::new(sink.clone(), "h\n".to_owned());
        let mut put = |text: &str| {
            gathering.add(&text.to_owned());
            gathering.put();
        };
        put("1\n");
        sink.0.lock().unwrap().0 = false;
        put("2\n");
        put("3\n");
        assert_eq!(sink.0.lock().unwrap().1, b"h\n2\n3\n");
        assert_eq!(gathering.written.lost, 1);
    }
}
