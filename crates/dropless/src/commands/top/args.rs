//! Arguments of `dropless top`.

/// Watch a run from another terminal
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless top                                     the active run, or a list to choose from
  dropless top 4711                                the run of this process, or one it started
  dropless top runs/2026-01-01T12-00-00Z-send      the run that writes into this directory
  dropless top --once                              a snapshot, as text
  dropless top --once --json | jq .rate.rx_pps     a snapshot, for scripts

Keys: q quit, p pause, arrows choose and scroll, ? help.
Exit codes: 0 shown; 2 no such run.")]
pub struct Args {
    /// Process id or run directory [default: the only active run, else a list to choose from]
    #[arg(value_name = "RUN|PID")]
    pub run: Option<String>,
    /// Print one snapshot as text, and end
    #[arg(long)]
    pub once: bool,
    /// Print one snapshot as JSON, and end
    #[arg(long)]
    pub json: bool,
}
