//! Arguments of `dropless report`.

#![allow(
    clippy::doc_markdown,
    reason = "these comments are the help page, where backticks would show"
)]

use std::path::PathBuf;

use clap::Args;

/// Show runs: as one page, in the terminal, or for programs; several are laid side by side.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  dropless report runs/2025-11-20T23-30-45Z-send     in this terminal
  dropless report runs/2025-11-20T23-30-45Z-send --html run.html
                                                     one page with charts, needs no network
  dropless report before after --html both.html      two runs and their differences
  dropless report before after --fail-if 'loss worse 10%' --fail-if 'latency_p99 worse 5us'
                                                     a gate for CI: exit 1 when it is worse
  dropless report old.csv.zst --html old.html        intervals of the older dpdk-project

Exit codes: 0 shown; 1 shown, and a --fail-if failed; 2 could not be read, compared or written.")]
pub struct ReportArgs {
    /// Run directories, or files of intervals (CSV, plain or zstd); the first is what others are compared with
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// Write one self-contained page with charts; - is standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Show it in the terminal (that is what happens without any of these)
    #[arg(long, help_heading = "Output", conflicts_with_all = ["html", "csv", "json"])]
    pub terminal: bool,
    /// Print every figure of every run as CSV
    #[arg(long, help_heading = "Output", conflicts_with_all = ["html", "json"])]
    pub csv: bool,
    /// Print one JSON object with every figure, every difference and every summary
    #[arg(long, help_heading = "Output", conflicts_with = "html")]
    pub json: bool,
    /// Exit 1 if the last RUN is worse than the first, e.g. 'loss worse 10%', 'rate_rx worse 5%'; repeat for several
    #[arg(long = "fail-if", value_name = "RULE", help_heading = "Comparison")]
    pub fail_if: Vec<String>,
}
