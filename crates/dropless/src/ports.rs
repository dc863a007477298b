//! `dropless ports`: everything on this machine that could carry packets, and what stands in its way.

use anyhow::Result;

use crate::args::ports::PortsArgs;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &PortsArgs) -> Result<u8> {
    let _ = args;
    Ok(0)
}
