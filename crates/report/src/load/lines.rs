//! Reads a text file line by line, plain or packed with zstd, in bounded memory, and knows which line is the bad one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::read::ReadError;

/// No line of ours is longer than this by far; a file that has no line ends is not read into memory.
const LINE_MAX: u64 = 64 * 1024;
/// The first bytes of a zstd frame (RFC 8878, section 3.1.1).
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Bytes read ahead.
const AHEAD: usize = 256 * 1024;

/// The lines of one file.
pub struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    number: u64,
    ended: bool,
}

impl Lines {
    /// Opens `path`; whether it is packed is told by its first bytes, not by its name.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let failed = |cause| ReadError::Io {
            path: path.to_owned(),
            cause,
        };
        let mut file = BufReader::with_capacity(AHEAD, File::open(path).map_err(failed)?);
        let is_packed = file.fill_buf().map_err(failed)?.starts_with(&ZSTD_MAGIC);
        let reader: Box<dyn BufRead> = if is_packed {
            let unpacked = Frames::Between(Some(file));
            Box::new(BufReader::with_capacity(AHEAD, unpacked))
        } else {
            Box::new(file)
        };
        Ok(Self {
            path: path.to_owned(),
            reader,
            line: Vec::new(),
            number: 0,
            ended: true,
        })
    }

    /// The next line without its end, or nothing at the end of the file.
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
        if std::str::from_utf8(&self.line).is_err() {
            return Err(self.damaged("not text"));
        }
        Ok(std::str::from_utf8(&self.line).ok())
    }

    /// Whether the last line had its end: in a file of ours, one that has none is cut off.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// What is wrong with the line read last.
    pub fn damaged(&self, what: &str) -> ReadError {
        ReadError::Damaged {
            path: self.path.clone(),
            what: format!("line {}: {what}", self.number),
        }
    }
}

/// What the decoder says is about its own insides; people need to know what to do with the file.
const BROKEN: &str = "its zstd data is cut off or damaged; fix: copy or pack the file again (zstd -t tells whether it is whole)";
const FOLLOWED: &str = "something that is not zstd follows its zstd data; fix: copy or pack the file again (zstd -t tells whether it is whole)";

fn unpacking(words: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, words)
}

/// The content of all zstd frames of a file, one behind the other.
enum Frames {
    Within(Box<StreamingDecoder<BufReader<File>, FrameDecoder>>),
    Between(Option<BufReader<File>>),
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self {
                Self::Within(decoder) => {
                    let read = decoder.read(buffer).map_err(|_| unpacking(BROKEN))?;
                    if read > 0 || buffer.is_empty() {
                        return Ok(read);
                    }
                    let Self::Within(ended) = std::mem::replace(self, Self::Between(None)) else {
                        return Ok(0);
                    };
                    *self = Self::Between(Some(ended.into_inner()));
                }
                Self::Between(rest) => {
                    let Some(mut file) = rest.take() else { return Ok(0) };
                    if file.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let begins = file.fill_buf()?;
                    if !begins.starts_with(&ZSTD_MAGIC[..begins.len().min(ZSTD_MAGIC.len())]) {
                        return Err(unpacking(FOLLOWED));
                    }
                    let decoder = StreamingDecoder::new(file).map_err(|_| unpacking(BROKEN))?;
                    *self = Self::Within(Box::new(decoder));
                }
            }
        }
    }
}
