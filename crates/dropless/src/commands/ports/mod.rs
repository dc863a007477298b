//! `dropless ports`: everything on this machine that could carry packets, and what stands in its way.

pub mod args;
mod show;
#[cfg(test)]
mod tests;

use anyhow::Result;
use host::{Carrier, Sys, Warning};
use report::out::Console;
use serde::Serialize;

pub use args::Args;

/// Version of what `--json` prints.
const VERSION: u32 = 1;

/// What `--json` prints.
#[derive(Serialize)]
struct Listing {
    version: u32,
    carriers: Vec<Carrier>,
    /// What concerns this machine, whatever its ports.
    warnings: Vec<Warning>,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let sys = Sys::live();
    let (carriers, warnings) = (host::discover(&sys), doctor::ambient(&sys));
    let console = Console::json_or_text(args.json);
    let text = show::listing(&carriers, &warnings, &console.style());
    let listing = Listing {
        version: VERSION,
        carriers,
        warnings,
    };
    console.either(&listing, &text)?;
    Ok(0)
}
