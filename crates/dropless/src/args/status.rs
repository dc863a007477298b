//! Arguments of every command that runs for long: how it is watched from outside.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use measure::units::parse_duration;

use crate::about::{About as _, ensure_about};
use crate::status::StatusSettings;

/// Nobody waits longer for the last scrape.
const LINGER_MAX: Duration = Duration::from_secs(3600);

/// How a run is watched from outside.
#[derive(Args, Debug, Clone, Default)]
pub struct StatusArgs {
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

impl StatusArgs {
    /// Checked and without the command line.
    pub fn settings(&self) -> Result<StatusSettings> {
        let linger = if self.metrics.is_some() {
            parse_duration(&self.metrics_linger).about("--metrics-linger")?
        } else {
            Duration::ZERO
        };
        ensure_about!(
            "--metrics-linger",
            linger <= LINGER_MAX,
            "--metrics-linger {} is more than an hour; give less",
            self.metrics_linger
        );
        Ok(StatusSettings {
            metrics: self.metrics.clone(),
            linger,
        })
    }
}
