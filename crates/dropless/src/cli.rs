//! The command line: subcommands, help, and what an error there looks like.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Command;

use crate::{EXIT_INVALID, commands, complaint, preset, run};

/// Of this program; `--version` adds that of the DPDK it runs on.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The whole command line.
pub fn command() -> Command {
    let command = Command::new("dropless")
        .version(VERSION)
        .long_version(format!("{VERSION}\n{}", dpdk::version()))
        .about("Send and reflect packets at line rate, and account for every single one")
        .max_term_width(100)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(EXAMPLES);
    preset::augment(commands::augment(command))
}

/// Runs the program with `arguments`, its own name first.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    run::parent::end_with();
    run::parent::be_named();
    run::signals::survive_long_files();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let is_json = arguments.iter().any(|argument| argument == "--json");
    let expanded = match preset::expand(built, arguments) {
        Ok(expanded) => expanded,
        Err(error) => {
            complaint::tell(&format!("{error:#}"), is_json);
            return ExitCode::from(EXIT_INVALID);
        }
    };
    if let Some(line) = &expanded.refused {
        complaint::tell(line, expanded.is_json());
        return ExitCode::from(EXIT_INVALID);
    }
    let matches = match command().try_get_matches_from(&expanded.arguments) {
        Ok(matches) => matches,
        Err(mut error) => {
            // Help and version are no errors; a closed stdout is none either.
            let code = if error.use_stderr() { EXIT_INVALID } else { 0 };
            let given: Vec<_> = expanded
                .arguments
                .iter()
                .skip(1)
                .filter_map(|word| word.to_str())
                .collect();
            match complaint::of_usage(&mut error, &given) {
                Some(line) => complaint::tell(
                    &format!("{}{line}", expanded.place_of_conflict(&error)),
                    expanded.is_json(),
                ),
                None => drop(error.print()),
            }
            return ExitCode::from(code);
        }
    };
    match commands::run(&matches) {
        Some(Ok(code)) => ExitCode::from(code),
        Some(Err(error)) => {
            let line = format!("{}{error:#}", expanded.place_of(&error));
            complaint::tell(&line, expanded.is_json());
            ExitCode::from(EXIT_INVALID)
        }
        // The parser asks for one.
        None => ExitCode::from(EXIT_INVALID),
    }
}

/// The same, each command knowing how it is called.
fn built() -> Command {
    let mut command = command();
    command.build();
    command
}

const EXAMPLES: &str = "Examples:
  dropless send                                   the whole job on this machine, nothing needed
  dropless ports                                  what could carry packets here, and what is missing
  dropless doctor                                 what would cost packets here, and what mends it
  dropless reflect --port xdp:eth1                return packets on the far machine
  dropless send --port xdp:eth1 --to 10.0.0.2 --rate 1Mpps --duration 10s
  dropless search --port xdp:eth1 --to 10.0.0.2   the highest rate without loss
  dropless report runs/* --html runs.html         charts, side by side, in one page

Exit codes: 0 measured and clean; 1 measured, and loss or a failed expectation was found;
2 could not measure.";
