//! The command line of the benchmark.

use std::path::PathBuf;

use clap::Parser;

use crate::flat::FLATS;
use crate::row::ROWS;

/// Measures dropless beside dpdk-testpmd, or beside another build of itself, in alternating rounds.
#[derive(Parser)]
#[command(
    bin_name = "./dev bench",
    after_help = "Rows:
  null ring ring-two-cores reflect reflect-blank memif memif-copy xdp packet         beside testpmd
  checksum-512 checksum-1518                                                         the same, of long frames
  explain watched watched-null tap tap-stopped payload                               beside a plain run, or alone
  payload-512-apart payload-1518-apart                                               two cores beside one
  flat-null-flows flat-null-streams flat-null-rated                                  cost per packet as their number grows
  flat-ring-flows flat-ring-streams flat-ring-rated                                  the same

A full run writes docs/benchmark.md. Exit codes: 0 every target was met; 1 one was not; 2 a row could not be measured."
)]
pub struct Args {
    /// Rows to measure [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Rounds: each measures both programs, and the next swaps their order
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Length of one measurement
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    pub seconds: f64,
    /// One round of one second: does it all work? Targets are not judged
    #[arg(long)]
    pub quick: bool,
    /// Another build of dropless to measure beside this one, instead of testpmd: what did a change cost?
    #[arg(long, value_name = "PROGRAM")]
    pub before: Option<PathBuf>,
    /// What cargo tells a benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

impl Args {
    /// Reads the command line; nothing unless `cargo bench` started this.
    pub fn parse() -> Option<Self> {
        if !std::env::args().any(|argument| argument == "--bench") {
            return None;
        }
        let mut args = <Self as Parser>::parse();
        if args.quick {
            (args.rounds, args.seconds) = (1, 1.0);
        }
        args.check();
        Some(args)
    }

    fn check(&self) {
        let refuse = |text: String| {
            eprintln!("bench: {text}");
            std::process::exit(2);
        };
        if !(0.5..=600.0).contains(&self.seconds) {
            refuse(format!("--seconds {} is not between 0.5 and 600", self.seconds));
        }
        if let Some(before) = self.before.as_ref().filter(|before| !before.is_file()) {
            refuse(format!("--before {} is not a program", before.display()));
        }
        let known: Vec<&str> = ROWS
            .iter()
            .map(|row| row.name)
            .chain(FLATS.iter().map(|flat| flat.name))
            .collect();
        if let Some(name) = self.names.iter().find(|name| !known.contains(&name.as_str())) {
            refuse(format!(
                "no row is called {name}; there are: {}",
                known.join(", ")
            ));
        }
    }

    /// Whether this row is to be measured.
    pub fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }

    /// What the other program of each round is called in the tables.
    pub fn other(&self) -> &'static str {
        if self.before.is_some() {
            "before"
        } else {
            "testpmd"
        }
    }

    /// Whether every row is measured for as long as it takes to say something.
    pub fn is_full(&self) -> bool {
        self.names.is_empty() && !self.quick && self.before.is_none()
    }
}
