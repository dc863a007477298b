//! Packets on their way from where they are to where they go.

use anyhow::Result;
use capture::input::{Packet, Reader};

use super::progress::Progress;
use super::sink::Sink;
use crate::run::signals::Interrupt;

/// What is read, to where, and how much of it.
pub struct Reading {
    sink: Sink,
    taken: u64,
    wanted: u64,
    interrupt: Interrupt,
    progress: Progress,
}

impl Reading {
    /// Takes `wanted` packets, or all.
    pub fn new(sink: Sink, wanted: Option<u64>, interrupt: Interrupt) -> Self {
        Self {
            // Lines are their own progress.
            progress: Progress::new(sink.is_silent()),
            sink,
            taken: 0,
            wanted: wanted.unwrap_or(u64::MAX),
            interrupt,
        }
    }

    /// How many packets were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// What ends it.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Whether nothing more is wanted.
    pub fn is_over(&self) -> bool {
        self.taken >= self.wanted || self.sink.is_closed() || self.interrupt.is_set()
    }

    /// Takes a packet.
    #[inline]
    pub fn take(&mut self, packet: &Packet<'_>) -> Result<()> {
        self.taken += 1;
        self.sink.take(packet)
    }

    /// Takes all of a file.
    pub fn file(&mut self, mut reader: Reader) -> Result<()> {
        while !self.is_over() {
            if let Some(packet) = reader.next_in_memory()? {
                self.take(&packet)?;
                continue;
            }
            self.pause()?;
            match reader.next_packet() {
                Ok(Some(packet)) => self.take(&packet)?,
                Ok(None) => {
                    self.tell_end(&reader);
                    break;
                }
                // An interrupt ends a stream wherever it is.
                Err(_) if self.interrupt.is_set() => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Says what a capture of ours lacks whose writer did not come to end it: none of its packets, and so it is no error.
    fn tell_end(&mut self, reader: &Reader) {
        if reader.is_left_open() {
            self.progress.clear();
            let _ = report::out::print_stderr(&format!(
                "{} was not ended: its writer was killed, or still writes; all packets that are in it were read\n",
                reader.name()
            ));
        }
    }

    /// Shows what was taken: what comes next may have to be waited for.
    pub fn pause(&mut self) -> Result<()> {
        self.progress.look(self.taken);
        self.sink.flush()
    }

    /// Shows the rest.
    pub fn finish(&mut self) -> Result<()> {
        self.progress.clear();
        self.sink.finish()
    }
}
