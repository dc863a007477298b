//! `dropless read`: packets of files and of rings as lines, or as statistics of who talks to whom.

pub mod args;
mod chosen;
mod progress;
mod reading;
mod ring;
mod sink;
mod source;
mod statistics;
mod tables;

use anyhow::{Result, ensure};

use crate::plan::{nonzero_count, optional};
use crate::run::signals::Interrupt;
pub use args::Args;
use chosen::Chosen;
use reading::Reading;
use sink::Sink;
use source::Source;

/// Exit code where a ring overwrote what was not read yet.
const EXIT_LOST: u8 = 1;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    ensure!(
        args.top.is_none() || args.connections || (args.time.is_none() && !args.utc),
        "--top has no times that --time or --utc could change; leave them out, or add --connections"
    );
    let wanted = optional(args.count.as_deref(), "--count", nonzero_count)?;
    let chosen = Chosen::new(args.filter.as_deref())?;
    let mut reading = Reading::new(Sink::new(args)?, (chosen, wanted), Interrupt::install()?);
    // What is wrong with a name is told before anything is printed.
    let mut has_ring = false;
    for path in &args.sources {
        has_ring |= source::check(path)?;
    }
    ensure!(
        has_ring || !args.lossless,
        "--lossless is for the ring of a running capture, and no file is overwritten while it is read; leave it out"
    );
    let mut lost = 0;
    let read = args.sources.iter().try_for_each(|path| {
        if reading.is_over() {
            return Ok(());
        }
        match source::find(path, reading.interrupt()) {
            Ok(Source::File(reader)) => reading.file(*reader),
            Ok(Source::Ring(door)) => {
                lost += ring::read(&door, args.lossless, &mut reading)?;
                Ok(())
            }
            // A stream that has not begun.
            Err(_) if reading.interrupt().is_set() => Ok(()),
            Err(error) => Err(error),
        }
    });
    // What was read before an error is told first, if anything was.
    if read.is_ok() || reading.taken() > 0 {
        reading.finish()?;
    }
    read?;
    Ok(if lost > 0 { EXIT_LOST } else { 0 })
}
