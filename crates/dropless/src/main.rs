//! `dropless`: arguments become a validated plan, the plan is wired to the data plane, the result is reported.
#![forbid(unsafe_code)]

mod args;
mod buffers;
mod clock;
mod compare;
mod complaint;
mod doctor;
mod eal;
mod explain;
mod kernel_port;
mod live;
mod metrics;
mod noise;
mod open;
mod parent;
mod peer;
mod placement;
mod plan;
mod ports;
mod reflect;
mod search;
mod send;
mod session;
mod show_report;
mod signals;
mod stream;
mod top;
mod tune;
mod workers;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Command};

/// Exit code of a run that could not measure.
const EXIT_INVALID: u8 = measure::summary::EXIT_INVALID;

fn main() -> ExitCode {
    parent::end_with();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; a closed stdout is none either.
            let code = if error.use_stderr() { EXIT_INVALID } else { 0 };
            match complaint::of_usage(&error, std::env::args().nth(1).as_deref()) {
                Some(line) => complaint::tell(&line),
                None => drop(error.print()),
            }
            return ExitCode::from(code);
        }
    };
    let result = match &cli.command {
        Command::Send(args) => send::run(args),
        Command::Search(args) => search::run(args),
        Command::Reflect(args) => reflect::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Noise(args) => noise::run(args),
        Command::Ports(args) => ports::run(args),
        Command::Report(args) => show_report::run(args),
        Command::Tune(args) => tune::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Top(args) => top::run(args),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "dropless", &mut text);
            report::out::print_stdout(&String::from_utf8_lossy(&text))
                .map(|()| 0)
                .map_err(Into::into)
        }
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            complaint::tell(&format!("{error:#}"));
            ExitCode::from(EXIT_INVALID)
        }
    }
}
