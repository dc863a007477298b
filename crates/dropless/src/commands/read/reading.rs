//! Packets on their way from where they are to where they go.

use anyhow::Result;
use capture::input::{Packet, Reader};

use super::chosen::Chosen;
use super::progress::Progress;
use super::sink::Sink;
use crate::run::signals::Interrupt;

/// What is read, to where, and how much of it.
pub struct Reading {
    sink: Sink,
    chosen: Chosen,
    /// Packets that were looked at, and those of them that were wanted.
    seen: u64,
    taken: u64,
    wanted: u64,
    interrupt: Interrupt,
    progress: Progress,
}

impl Reading {
    /// Takes `wanted` packets of those that are chosen, or all of them.
    pub fn new(sink: Sink, (chosen, wanted): (Chosen, Option<u64>), interrupt: Interrupt) -> Self {
        Self {
            // Lines are their own progress.
            progress: Progress::new(sink.is_silent()),
            sink,
            chosen,
            seen: 0,
            taken: 0,
            wanted: wanted.unwrap_or(u64::MAX),
            interrupt,
        }
    }

    /// How many packets were looked at.
    pub fn seen(&self) -> u64 {
        self.seen
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
        self.seen += 1;
        if !self.chosen.has(packet)? {
            return Ok(());
        }
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
                "{} has no end of a capture: its writer was killed, still writes, or another program copied it without that; all packets that are in it were read\n",
                reader.name()
            ));
        }
    }

    /// Says that the capture which wrote a ring was killed: none of what it committed is missing, and so it is no error.
    pub fn tell_died(&mut self, ring: &str) -> Result<()> {
        self.progress.clear();
        self.sink.tell_died(ring)?;
        report::out::print_stderr(&format!(
            "the capture of {ring} died without an end; all packets that it had committed were read\n"
        ))?;
        Ok(())
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
