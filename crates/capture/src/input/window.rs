//! A bounded window onto a stream.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;

/// Bytes asked for at once: few system calls, and still within a processor's cache.
const WINDOW: usize = 256 << 10;

pub struct Window {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// What was not taken yet.
    fresh: Range<usize>,
    /// Where in the stream that begins.
    offset: u64,
}

impl Window {
    pub fn new(source: Box<dyn Read + Send>) -> Self {
        Self {
            source,
            buffer: vec![0; WINDOW],
            fresh: 0..0,
            offset: 0,
        }
    }

    /// What was read and not taken yet.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.fresh.clone()]
    }

    /// Bytes by their place in the buffer, as [`Window::take`] told it.
    #[inline]
    pub fn at(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// How many bytes of the stream were taken.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Takes `len` bytes, as many as there are at most; they stay where they are, from the returned place on, until more
    /// is read.
    #[inline]
    pub fn take(&mut self, len: usize) -> usize {
        let at = self.fresh.start;
        let len = len.min(self.fresh.len());
        self.fresh.start += len;
        self.offset += len as u64;
        at
    }

    /// Reads until `len` bytes are there; `false` if the stream ends before.
    pub fn fill(&mut self, len: usize) -> io::Result<bool> {
        if self.fresh.len() >= len {
            return Ok(true);
        }
        self.buffer.copy_within(self.fresh.clone(), 0);
        self.fresh = 0..self.fresh.len();
        if self.buffer.len() < len {
            self.buffer.resize(len.next_power_of_two(), 0);
        }
        while self.fresh.len() < len {
            if !self.read()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes on behind `len` bytes, wherever they end; `false` if the stream ends before.
    pub fn skip(&mut self, len: u64) -> io::Result<bool> {
        let mut left = len;
        loop {
            let there = left.min(self.fresh.len() as u64);
            self.take(there as usize);
            left -= there;
            if left == 0 {
                return Ok(true);
            }
            self.fresh = 0..0;
            if !self.read()? {
                return Ok(false);
            }
        }
    }

    /// Reads what is there now behind what was not taken; `false` at the end of the stream.
    fn read(&mut self) -> io::Result<bool> {
        loop {
            match self.source.read(&mut self.buffer[self.fresh.end..]) {
                Ok(0) => return Ok(false),
                Ok(more) => {
                    self.fresh.end += more;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
