//! The command line of the benchmark.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::PARTS;
use crate::row::ROWS;

/// Measures filtering: packets a second and core beside xdp-filter, nftables and iptables, what many rules cost, forwarding
/// beside testpmd, tables beside `librte_acl`, and reloads.
#[derive(Parser)]
#[command(
    bin_name = "./dev bench filter",
    after_help = "Rows:
  one fifty prefixes   XDP on a virtual wire, beside xdp-filter, nftables and iptables
  forward              in user space beside testpmd; or one of its rows alone
  tables               nanoseconds a packet, beside librte_acl
  reload               half a million prefixes in the place of others
  guard                from the first packet of a flood to its drop
  flood                a flood with legitimate packets in it, of which none may be lost

A full run writes its part of docs/benchmark.md.
Exit codes: 0 every target was met; 1 one was not; 2 something could not be measured."
)]
pub struct Args {
    /// Rows to measure [default: all]
    #[arg(value_name = "ROW", value_parser = PossibleValuesParser::new(PARTS.into_iter().chain(ROWS.iter().map(|row| row.name))))]
    names: Vec<String>,
    /// Rounds: each measures all that is compared, and the next swaps the order; medians are told
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Length of one measurement
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    pub seconds: f64,
    /// Of the rounds with testpmd: nothing
    #[arg(skip)]
    pub before: Option<PathBuf>,
    /// What cargo tells a benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

impl Args {
    /// Reads the command line; nothing unless `cargo bench` started this.
    pub fn parse() -> Option<Self> {
        let is_bench = std::env::args().any(|argument| argument == "--bench");
        is_bench.then(<Self as Parser>::parse)
    }

    /// Whether this row is to be measured.
    pub fn wants(&self, name: &str) -> bool {
        self.is_full() || self.names.iter().any(|wanted| wanted == name)
    }

    /// Whether one of the rows is whose names begin so.
    pub fn wants_some_of(&self, part: &str) -> bool {
        self.names.iter().any(|wanted| wanted.starts_with(part))
    }

    /// Whether every row is.
    pub fn is_full(&self) -> bool {
        self.names.is_empty()
    }
}
