//! `dropless`: arguments become a validated plan, the plan is wired to the data plane, the result is reported.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    dropless::cli::main(std::env::args_os())
}
