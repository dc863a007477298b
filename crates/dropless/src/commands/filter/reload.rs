//! `dropless filter reload`: has a run read its rules again.

use anyhow::{Result, anyhow};
use report::number::counted;
use report::out::Console;
use serde::Serialize;

use crate::run::reload;
use crate::status::find::Target;

/// Version of what `--json` prints.
const VERSION: u32 = 1;

/// Have a running filter, guard or forward read its rule file again; wrong rules are refused, and those before stay
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless filter reload                           the only run that has rules
  dropless filter reload 4711                      the run of this process
kill -HUP does the same, without waiting for what comes of it.
Exit codes: 0 the new rules are in force; 2 they were refused, or there is no such run.")]
pub struct Args {
    /// Process id or run directory [default: the only run that has rules]
    #[arg(value_name = "RUN|PID")]
    run: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Reloaded<'r> {
    version: u32,
    process: u32,
    file: &'r str,
    generation: u64,
    rules: u64,
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let found = reload::with_rules(&Target::parse(args.run.as_deref()), "dropless filter reload")?;
    let rules = reload::reload(&found)?;
    if let Some(refused) = &rules.refused {
        return Err(anyhow!("{refused}"));
    }
    let reloaded = Reloaded {
        version: VERSION,
        process: found.process,
        file: &rules.file,
        generation: rules.generation,
        rules: rules.rules,
    };
    let text = format!(
        "{}: {} in force, generation {}\n",
        rules.file,
        counted(rules.rules, "rule"),
        rules.generation
    );
    Console::json_or_text(args.json).either(&reloaded, &text)?;
    Ok(0)
}
