//! `dropless filter`: which packets pass, by rules.

mod check;
mod reload;
mod run;
mod test;
mod why;

use anyhow::Result;

/// Decide which packets pass by rules: check a rule file, or try it on a capture
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless filter check edge.rules                 what is wrong with it, and rules that are never met
  dropless filter test edge.rules attack.pcapng    each packet's verdict, and what each rule met
  dropless filter test edge.rules attack.pcapng --why 7
A rule file has one rule a line, and the first that decides counts:
  define us = 192.0.2.0/24, 2001:db8::/32
  deny malformed
  allow from @us
  deny udp sport 53,123,1900 to @us
  rate 10kpps per source/24 tcp flags syn/syn,ack to @us dport 80,443
  default allow")]
pub struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(clap::Subcommand, Debug)]
enum Task {
    Run(run::Args),
    Reload(reload::Args),
    Check(check::Args),
    Test(test::Args),
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    match &args.task {
        Task::Run(args) => run::run(args),
        Task::Reload(args) => reload::run(args),
        Task::Check(args) => check::run(args),
        Task::Test(args) => test::run(args),
    }
}
