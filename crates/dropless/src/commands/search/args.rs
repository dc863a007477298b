//! Arguments of `dropless search`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use measure::search::Method;

use crate::args::status::StatusArgs;
use crate::args::{MachineArgs, OutputArgs, PathArgs, ProbeArgs};

/// How the rate is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "each would make the help page a long one")]
pub enum MethodArg {
    Mlr,
    Rfc2544,
}

impl From<MethodArg> for Method {
    fn from(method: MethodArg) -> Self {
        match method {
            MethodArg::Mlr => Self::Mlr,
            MethodArg::Rfc2544 => Self::Rfc2544,
        }
    }
}

/// Find the highest rate that a path carries, and say who was the limit
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  dropless search --port xdp:eth1 --to 10.0.0.2            the rate without loss of 64-byte frames
  dropless search --port xdp:eth1 --to 10.0.0.2 --sizes 64,512,1518,imix --goal ndr --goal pdr
  dropless search --goal loss=0.1%,width=1% --max-rate 2Mpps --json
  dropless search --method rfc2544 --test throughput,latency,back-to-back --sizes standard --dry-run
  dropless search --resume runs/2026-11-21T12-00-00Z-search

Exit codes: 0 every goal has an answer about the path; 1 our own sender or receiver, the port, or
the reflector, was the limit, or not even the lowest rate was carried; 2 could not measure, or was
interrupted.")]
pub struct SearchArgs {
    /// Where probes go
    #[command(flatten)]
    pub path: PathArgs,

    /// How to look: many short trials, or the long ones of RFC 2544
    #[arg(long, value_enum, value_name = "METHOD", default_value_t = MethodArg::Mlr, help_heading = "Search")]
    pub method: MethodArg,
    /// ndr (no loss), pdr (0.5 %) or loss=0.1%,width=1%,...: also name, exceed, initial, final, sum, steps, expand;
    /// repeat for several [default: ndr]
    #[arg(long = "goal", value_name = "GOAL", help_heading = "Search")]
    pub goals: Vec<String>,
    /// Frame sizes with FCS, each with a search of its own: 64,512,imix, or standard for those of RFC 2544 [default: the smallest]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', help_heading = "Search")]
    pub sizes: Vec<String>,
    /// The highest rate tried: pps, bps or % [default: measured, what our sender reaches]
    #[arg(long, value_name = "RATE", help_heading = "Search")]
    pub max_rate: Option<String>,
    /// The lowest rate tried [default: a thousandth of the highest]
    #[arg(long, value_name = "RATE", help_heading = "Search")]
    pub min_rate: Option<String>,
    /// The answer's bounds differ by at most this part of the upper one
    #[arg(long, value_name = "SHARE", default_value = "0.5%", help_heading = "Search")]
    pub width: String,
    /// mlr: the shortest trial [default: 1s]
    #[arg(long, value_name = "TIME", help_heading = "Search")]
    pub initial_duration: Option<String>,
    /// mlr: the longest trial [default: 1s]
    #[arg(long, value_name = "TIME", help_heading = "Search")]
    pub final_duration: Option<String>,
    /// mlr: time at one rate that decides about it [default: 21s]
    #[arg(long, value_name = "TIME", help_heading = "Search")]
    pub duration_sum: Option<String>,
    /// rfc2544: throughput, latency, frame-loss, back-to-back [default: throughput, which is always the first]
    #[arg(
        long = "test",
        value_name = "TESTS",
        value_delimiter = ',',
        help_heading = "Search"
    )]
    pub tests: Vec<String>,
    /// rfc2544: a trial of throughput or of frame loss [default: 60s]
    #[arg(long, value_name = "TIME", help_heading = "Search")]
    pub trial_duration: Option<String>,
    /// rfc2544: trials of latency [default: 20]
    #[arg(long, value_name = "N", help_heading = "Search")]
    pub latency_trials: Option<u32>,
    /// rfc2544: how long each lasts [default: 120s]
    #[arg(long, value_name = "TIME", help_heading = "Search")]
    pub latency_duration: Option<String>,
    /// rfc2544: how often the longest burst is looked for [default: 50]
    #[arg(long, value_name = "N", help_heading = "Search")]
    pub burst_repeats: Option<u32>,
    /// rfc2544: the longest burst tried [default: 2s]
    #[arg(long, value_name = "TIME", help_heading = "Search")]
    pub burst_duration: Option<String>,
    /// Rest between two trials [default: 5s with rfc2544, else none]
    #[arg(long, value_name = "TIME", help_heading = "Search")]
    pub settle: Option<String>,
    /// Only say how long it would take
    #[arg(long, help_heading = "Search")]
    pub dry_run: bool,
    /// Go on with an interrupted search, by its run directory; other arguments are ignored, but for output
    #[arg(long, value_name = "DIR", help_heading = "Search")]
    pub resume: Option<PathBuf>,
    /// Let its plan pass arguments to DPDK, use file ports, and take devices by force: only if you know who wrote it
    #[arg(long, requires = "resume", help_heading = "Search")]
    pub trust_plan: bool,

    /// Queues, cores and memory
    #[command(flatten)]
    pub machine: MachineArgs,
    /// What probes look like, and how they are judged
    #[command(flatten)]
    pub probe: ProbeArgs,
    /// What this prints and where it writes
    #[command(flatten)]
    pub output: OutputArgs,
    /// How it is watched from outside
    #[command(flatten)]
    pub status: StatusArgs,
    /// Show DPDK's own log
    #[arg(long, help_heading = "Output")]
    pub verbose: bool,
}
