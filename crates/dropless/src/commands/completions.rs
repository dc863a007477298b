//! `dropless completions`: completion scripts for shells.

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use guard::Class;
use measure::comparison::Method;
use measure::metric::{Measured, metric_names};
use measure::search::Test;
use measure::{CaptureSummary, ForwardSummary, ReplaySummary, Summary};

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
    let mut command = with_values(cli::command());
    clap_complete::generate(args.shell, &mut command, "dropless", &mut text);
    report::out::print_stdout(&String::from_utf8_lossy(&text))?;
    Ok(0)
}

/// The command line with the values that flags may begin with: more than the parser knows, which takes most as text.
fn with_values(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|argument| with_value(&name, argument));
    command.mut_subcommands(with_values)
}

fn with_value(command: &str, argument: Arg) -> Arg {
    if !argument.get_action().takes_values() || !argument.get_possible_values().is_empty() {
        return argument;
    }
    let values = values(command, argument.get_long().unwrap_or_default());
    // What is neither a word nor a path is not completed with the names of files, and no space is put behind a beginning.
    let argument = match argument.get_value_hint() {
        ValueHint::Unknown => argument.value_hint(ValueHint::Other),
        _ => argument,
    };
    if values.is_empty() {
        return argument;
    }
    argument.value_parser(PossibleValuesParser::new(values))
}

/// How values of the flag may begin; empty where anything may stand.
fn values(command: &str, flag: &str) -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    match flag {
        "port" | "near-port" | "far-port" => host::beginnings().collect(),
        "kernel" => words(&["tap:"]),
        "goal" => words(&["ndr", "pdr", "loss="]),
        "expect" => match command {
            "capture" => metrics::<CaptureSummary>(),
            "forward" | "guard" => metrics::<ForwardSummary>(),
            "replay" => metrics::<ReplaySummary>(),
            _ => metrics::<Summary>(),
        },
        "methods" => Method::ALL.map(|method| method.name().to_owned()).to_vec(),
        "test" => words(&Test::NAMES),
        "threshold" if command == "guard" => Class::ALL.map(|class| format!("{}=", class.name())).to_vec(),
        "size" if command != "compare" => words(&["64", "1518", "imix"]),
        "sizes" => words(&["standard", "imix"]),
        _ => Vec::new(),
    }
}

/// The metrics of a result, which a condition begins with.
fn metrics<S: Measured>() -> Vec<String> {
    metric_names::<S>().map(str::to_owned).collect()
}
