//! `dropless filter`: which packets pass, by rules.

mod check;
mod import;
mod reload;
mod run;
mod status;
mod stop;
mod test;
mod times;
mod top;
mod why;

use anyhow::Result;

/// Decide which packets pass an interface by rules, in XDP; check, try or import a rule file
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless filter run edge.rules --dev eth1        drop what it denies, before the kernel sees it
  dropless filter check edge.rules                 what is wrong with it, and rules that are never met
  dropless filter test edge.rules attack.pcapng    each packet's verdict, and what each rule met
  dropless filter test edge.rules attack.pcapng --why 7
  nft -j list ruleset | dropless filter import -   the rules of nftables or iptables in this language
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
    Status(status::Args),
    Top(top::Args),
    Stop(stop::Args),
    Check(check::Args),
    Test(test::Args),
    Import(import::Args),
}

/// Runs the subcommand; the result is its exit code.
pub fn run(args: &Args) -> Result<u8> {
    match &args.task {
        Task::Run(args) => run::run(args),
        Task::Reload(args) => reload::run(args),
        Task::Status(args) => status::run(args),
        Task::Top(args) => top::run(args),
        Task::Stop(args) => stop::run(args),
        Task::Check(args) => check::run(args),
        Task::Test(args) => test::run(args),
        Task::Import(args) => import::run(args),
    }
}
