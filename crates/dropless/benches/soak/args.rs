//! The command line of a soak.

use std::path::PathBuf;

use clap::Parser;

use crate::plan::{KINDS, Kind};

/// Sends, reflects, captures and forwards, round by round, under faults, reloads, kills and thieves; after each round everything that was sent
/// must be received or named.
#[derive(Parser)]
#[command(
    bin_name = "./dev soak",
    after_help = "A round is drawn from its seed: `--seed N --rounds 1` plays the round of seed N again.
Exit codes: 0 every round balanced; 1 one did not; 2 nothing could be run."
)]
pub struct Args {
    /// How long [default: 2, or with --packets, --rounds or --each until these are over]
    #[arg(value_name = "HOURS", value_parser = hours)]
    pub hours: Option<f64>,
    /// Seed of the first round [default: from the clock, printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u32>,
    /// End after so many rounds
    #[arg(long, value_name = "N")]
    pub rounds: Option<u64>,
    /// One round of each kind, and end
    #[arg(long, conflicts_with_all = ["rounds", "packets"])]
    pub each: bool,
    /// How long a round sends [default: drawn, 5 to 60]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: Option<u32>,
    /// Only rounds of these kinds
    #[arg(long, value_name = "KIND", num_args = 1.., value_parser = kind)]
    pub only: Vec<Kind>,
    /// Flood through the embedded ring, and through memif, until each has carried so many (10G) and nothing is unexplained
    #[arg(long, value_name = "N", value_parser = count)]
    pub packets: Option<u64>,
    /// Print the kinds of rounds, and end
    #[arg(long)]
    pub list: bool,
    /// The program to run [default: the one that was built with this]
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// What cargo tells a benchmark
    #[arg(long, hide = true)]
    pub bench: bool,
}

/// What is told of each kind.
pub fn list() -> String {
    let line = |(_, name, does, _): &(Kind, &str, &str, bool)| format!("{name:<12}{does}\n");
    KINDS.iter().map(line).collect()
}

fn kind(text: &str) -> Result<Kind, String> {
    let found = KINDS.iter().find(|kind| kind.1 == text);
    found
        .map(|kind| kind.0)
        .ok_or_else(|| format!("there are:\n{}", list()))
}

fn hours(text: &str) -> Result<f64, String> {
    let hours = text
        .parse()
        .map_err(|_| "not a number of hours, e.g. 0.1".to_owned())?;
    if (0.001..=10_000.0).contains(&hours) {
        Ok(hours)
    } else {
        Err("from 0.001 to 10000 hours".into())
    }
}

/// A count as `dropless` takes it.
fn count(text: &str) -> Result<u64, String> {
    measure::units::parse_count(text).map_err(|error| error.to_string())
}
