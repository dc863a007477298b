//! Reads a text file line by line, plain or packed with zstd, in bounded memory, and knows which line is the bad one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use zstd::stream::read::Decoder;

use crate::input::{self, is_unsafe};
use crate::read::ReadError;

/// No line of ours is longer than this by far; a file that has no line ends is not read into memory.
const LINE_MAX: u64 = 64 * 1024;
/// The first bytes of a zstd frame (RFC 8878, section 3.1.1), as a number.
const ZSTD_MAGIC: u32 = 0xFD2F_B528;
/// Those of a frame to be skipped (section 3.1.2), such as pzstd begins with.
const ZSTD_SKIPPED: RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;
/// What `zstd -d` takes without being asked: 2^27 bytes are remembered to unpack the next ones.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// From this many unpacked bytes on, a file is looked at for how much it was packed.
const RATIO_FROM: u64 = 64 << 20;
/// Where every row is like the one before, `zstd -19` makes a 200th of a table.
const RATIO_MAX: u64 = 1000;
/// Bytes read ahead.
const AHEAD: usize = 256 * 1024;

/// The lines of one file.
pub struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    cleaned: String,
    number: u64,
    ended: bool,
}

impl Lines {
    /// Opens `path`; whether it is packed is told by its first bytes, not by its name.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let failed = ReadError::io(path);
        let mut file = BufReader::with_capacity(AHEAD, input::open(path)?);
        let first = file.fill_buf().map_err(&failed)?.first_chunk();
        let magic = first.map(|bytes| u32::from_le_bytes(*bytes));
        let is_packed = magic.is_some_and(|magic| magic == ZSTD_MAGIC || ZSTD_SKIPPED.contains(&magic));
        let reader: Box<dyn BufRead> = if is_packed {
            let unpacked = Unpacked::of(file).map_err(failed)?;
            Box::new(BufReader::with_capacity(AHEAD, unpacked))
        } else {
            Box::new(file)
        };
        Ok(Self {
            path: path.to_owned(),
            reader,
            line: Vec::new(),
            cleaned: String::new(),
            number: 0,
            ended: true,
        })
    }

    /// The next line without its end and without control characters but tabs, or nothing at the end of the file.
    pub fn next_line(&mut self) -> Result<Option<&str>, ReadError> {
        self.line.clear();
        self.number += 1;
        let read = (&mut self.reader)
            .take(LINE_MAX)
            .read_until(b'\n', &mut self.line);
        match read {
            Ok(0) => return Ok(None),
            Ok(length) if length as u64 == LINE_MAX => {
                return Err(self.damaged(&format!("longer than {LINE_MAX} bytes, so not a line of a table")));
            }
            Ok(_) => {}
            Err(error) => return Err(self.damaged(&format!("cannot be read: {error}"))),
        }
        self.ended = self.line.ends_with(b"\n");
        while self.line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.pop();
        }
        if !self.ended {
            self.end_at_character();
        }
        let Ok(text) = std::str::from_utf8(&self.line) else {
            return Err(self.damaged("not text"));
        };
        let is_plain = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
        if self.line.iter().all(is_plain) {
            return Ok(Some(text));
        }
        let is_bad = |character| character != '\t' && is_unsafe(character);
        self.cleaned = text.replace(is_bad, "?");
        Ok(Some(&self.cleaned))
    }

    /// A line that is cut off may be so in the middle of a character: no reason to call it anything but cut off.
    fn end_at_character(&mut self) {
        let cut = std::str::from_utf8(&self.line)
            .err()
            .filter(|error| error.error_len().is_none());
        if let Some(error) = cut {
            self.line.truncate(error.valid_up_to());
            self.line.push(b'?');
        }
    }

    /// Whether the last line had its end: in a file of ours, one that has none is cut off.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// What is wrong with the line read last.
    pub fn damaged(&self, what: &str) -> ReadError {
        ReadError::damaged(&self.path, format!("line {}: {what}", self.number))
    }
}

// What the library says is about its own insides; people need to know what to do with the file.
const BROKEN: &str = "its zstd data is cut off or damaged; fix: copy or pack the file again (zstd -t tells whether it is whole)";
const FOLLOWED: &str = "something that is not zstd follows its zstd data; fix: copy or pack the file again (zstd -t tells whether it is whole)";
const WINDOW: &str = "its zstd data needs more than 128 MiB of memory to unpack; fix: unpack it before (zstd -d --long=31), or pack it again without --long";
const BOMB: &str = "its zstd data unpacks to more than 1000 times its size, which no table of figures does; fix: unpack it before (zstd -d) if that is right";

/// The content of all zstd frames of a file, one behind the other.
struct Unpacked {
    decoder: Decoder<'static, BufReader<Counted>>,
    length: u64,
}

impl Unpacked {
    fn of(file: BufReader<File>) -> io::Result<Self> {
        let mut decoder = Decoder::with_buffer(BufReader::with_capacity(AHEAD, Counted { file, length: 0 }))?;
        decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
        Ok(Self { decoder, length: 0 })
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self
            .decoder
            .read(buffer)
            .map_err(|error| unpacking(in_words(&error)))?;
        self.length += read as u64;
        let packed = self.decoder.get_ref().get_ref().length;
        if self.length > RATIO_FROM && self.length / RATIO_MAX > packed {
            return Err(unpacking(BOMB));
        }
        Ok(read)
    }
}

fn unpacking(words: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, words)
}

/// libzstd tells its errors apart by these names only.
fn in_words(error: &io::Error) -> &'static str {
    match error.to_string().as_str() {
        "Unknown frame descriptor" => FOLLOWED,
        "Frame requires too much memory for decoding" => WINDOW,
        _ => BROKEN,
    }
}

/// A file, and how much of it was read.
struct Counted {
    file: BufReader<File>,
    length: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.length += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last line of a file with these bytes, and whether it has its end.
    fn last(bytes: &[u8]) -> Result<(String, bool), ReadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        std::fs::write(&path, bytes).unwrap();
        let mut lines = Lines::open(&path)?;
        let mut last = String::new();
        while let Some(line) = lines.next_line()? {
            line.clone_into(&mut last);
        }
        Ok((last, lines.is_ended()))
    }

    #[test]
    fn a_line_that_is_cut_off_in_a_character_is_cut_off_and_no_binary() {
        let whole = "1,\u{00fc}\n2,\u{20ac}".as_bytes();
        assert_eq!(last(whole).unwrap(), ("2,\u{20ac}".into(), false));
        for cut in 1..3 {
            assert_eq!(last(&whole[..whole.len() - cut]).unwrap(), ("2,?".into(), false));
        }
        for binary in [&b"1,\xff"[..], b"1,\xe2\x82\n", b"1,\xe2\n2,3\n"] {
            let refused = last(binary).unwrap_err().to_string();
            assert!(refused.ends_with("line 1: not text"), "{refused}");
        }
    }
}
