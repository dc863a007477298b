//! `dropless top`: watches a run from another terminal, by what that run publishes.

mod ansi;
pub mod args;
mod draw;
mod history;
mod screen;
mod text;

use anyhow::Result;
use report::out;
use report::published::unix_ms;
use report::style::{Stream, Style};

use crate::status::find::{self, Target};
pub use args::Args;

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    let target = Target::parse(args.run.as_deref());
    if args.once || args.json {
        let mut found = find::one(&target, "dropless top")?.state?;
        found.health = found.health_by_now(found.age(unix_ms()));
        let text = if args.json {
            serde_json::to_string(&found)? + "\n"
        } else {
            text::render(&found, &Style::detect(Stream::Stdout))
        };
        out::print_stdout(&text)?;
        return Ok(0);
    }
    screen::run(target)
}
