//! `dropless filter top`: `dropless top`, of the run that has rules.

use std::os::unix::process::CommandExt as _;

use anyhow::{Context as _, Result};

use crate::run::{parent, reload};
use crate::status::find::Target;

/// Watch what each rule of a running filter, guard or forward meets: `dropless top` of that run
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Process id or run directory [default: the only run that has rules]
    #[arg(value_name = "RUN|PID")]
    run: Option<String>,
    /// Print one snapshot as text, and end
    #[arg(long)]
    once: bool,
    /// Print one snapshot as JSON, and end
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let found = reload::with_rules(&Target::parse(args.run.as_deref()), "dropless filter top")?;
    let mut top = parent::itself();
    top.args(["top", &found.process.to_string()]);
    top.args(args.once.then_some("--once"));
    top.args(args.json.then_some("--json"));
    Err(top.exec()).context("cannot start `dropless top`")
}
