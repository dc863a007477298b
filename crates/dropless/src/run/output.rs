//! Standard output in large pieces; a reader who has gone away is the end of it, not an error.

use std::io::{ErrorKind, Write, stdout};

use anyhow::{Context, Result};
use dissect::Text;

/// Bytes that are written at once.
const PIECE: usize = 64 << 10;

/// Text on its way out.
pub struct Output {
    pub text: Text,
    is_closed: bool,
}

impl Output {
    pub fn new() -> Self {
        Self {
            // What is begun below the limit may go beyond it by a line.
            text: Text::with_capacity(2 * PIECE),
            is_closed: false,
        }
    }

    /// Whether nobody reads any more.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Writes if there is a piece.
    #[inline]
    pub fn look(&mut self) -> Result<()> {
        if self.text.len() < PIECE {
            return Ok(());
        }
        self.flush()
    }

    /// Writes all there is.
    pub fn flush(&mut self) -> Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let mut stdout = stdout().lock();
        let written = stdout
            .write_all(self.text.as_bytes())
            .and_then(|()| stdout.flush());
        self.text.clear();
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            other => other.context("cannot write to standard output"),
        }
    }
}
