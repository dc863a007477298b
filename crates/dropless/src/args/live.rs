//! Arguments of every command that runs for long: how it is watched from outside.

#![allow(
    clippy::doc_markdown,
    reason = "these comments are the help page, where backticks would show"
)]

use clap::Args;

/// How a run is watched from outside.
#[derive(Args, Debug, Clone, Default)]
pub struct LiveArgs {
    /// Serve Prometheus metrics at /metrics and health at /healthz: IP:PORT, or :PORT on this machine only
    #[arg(long, value_name = "ADDR", help_heading = "Output")]
    pub metrics: Option<String>,
    /// Go on serving the last values for this long after the end
    #[arg(
        long,
        value_name = "TIME",
        default_value = "0s",
        requires = "metrics",
        help_heading = "Output"
    )]
    pub metrics_linger: String,
}
