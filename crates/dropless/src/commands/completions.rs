//! `dropless completions`: completion scripts for shells.

use anyhow::Result;

use crate::cli;

/// Print a completion script for a shell
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The shell to complete for
    shell: clap_complete::Shell,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "dropless", &mut text);
    report::out::print_stdout(&String::from_utf8_lossy(&text))?;
    Ok(0)
}
