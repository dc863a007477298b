//! `dropless read`: packets of files and of rings as lines, or as statistics of who talks to whom.

pub mod args;
mod output;
mod patient;
mod ring;
mod sink;
mod source;
mod statistics;
mod tables;

use anyhow::Result;
use capture::input::Reader;

use crate::run::signals::Interrupt;
pub use args::Args;
use sink::Sink;
use source::Source;

/// Exit code where a ring overwrote what was not read yet.
const EXIT_LOST: u8 = 1;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let mut reading = Reading {
        sink: Sink::new(args)?,
        left: match &args.count {
            Some(count) => args::count(count, "--count")?,
            None => u64::MAX,
        },
        interrupt: Interrupt::install()?,
    };
    let mut lost = 0;
    let read = args.sources.iter().try_for_each(|path| {
        if reading.is_over() {
            return Ok(());
        }
        match source::find(path, &reading.interrupt)? {
            Source::File(reader) => reading.file(*reader),
            Source::Ring(door) => {
                lost += ring::read(&door, args.lossless, &mut reading)?;
                Ok(())
            }
        }
    });
    // What was read before an error is told first.
    reading.sink.finish()?;
    read?;
    Ok(if lost > 0 { EXIT_LOST } else { 0 })
}

/// What is read, to where, and how much of it.
struct Reading {
    sink: Sink,
    left: u64,
    interrupt: Interrupt,
}

impl Reading {
    /// Whether nothing more is wanted.
    fn is_over(&self) -> bool {
        self.left == 0 || self.sink.is_closed() || self.interrupt.is_set()
    }

    fn take(&mut self, packet: &capture::input::Packet<'_>) -> Result<()> {
        self.left -= 1;
        self.sink.take(packet)
    }

    fn file(&mut self, mut reader: Reader) -> Result<()> {
        while !self.is_over() {
            if let Some(packet) = reader.next_in_memory()? {
                self.take(&packet)?;
                continue;
            }
            // What comes next may have to be waited for.
            self.sink.flush()?;
            match reader.next_packet() {
                Ok(Some(packet)) => self.take(&packet)?,
                Ok(None) => break,
                // An interrupt ends a stream wherever it is.
                Err(_) if self.interrupt.is_set() => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
