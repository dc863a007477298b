//! Arguments of `dropless filter run`.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueHint;

use crate::args::OutputArgs;
use crate::args::on_interface::{ModeArg, groups, number};
use crate::args::status::StatusArgs;
use crate::plan::{FilterPlan, SamplePlan, nonzero_ns, optional};

/// More denied packets a second and processor are not samples.
const SAMPLES_MAX: u64 = 100_000;

/// Put rules in force on an interface, in XDP: what they deny is dropped before the kernel sees it
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless filter run edge.rules --dev eth1        until Ctrl-C; then all passes again
  dropless filter reload                           reads edge.rules again, and swaps at once
  dropless filter top                              what each rule meets, live
  dropless filter run edge.rules --dev eth1 --stay   stays in force when this process ends
  dropless filter run edge.rules --dev eth1 --sample drops.pcapng
  dropless filter run edge.rules --dev eth1 --metrics :9100 --json

Wrong rules are refused with their line, and those before stay in force. Other programs on the
interface are never replaced.
With --stay the rules stay in force whatever ends this process, also Ctrl-C and kill -9; the next
run with --stay takes them over without a packet that is not judged, and their counts go on.
dropless filter stop ends them.
Exit codes: 0 it was in force to its end; 2 it was not, or could not be put in force.")]
pub struct Args {
    /// Rule file
    #[arg(value_name = "RULES", value_hint = ValueHint::FilePath)]
    rules: PathBuf,
    /// Interface whose packets are judged as they arrive
    #[arg(long, value_name = "INTERFACE")]
    dev: String,
    /// Where packets meet the rules
    #[arg(long, value_enum, default_value_t = ModeArg::Native)]
    mode: ModeArg,
    /// How long [default: until Ctrl-C]
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    /// Stay in force when this process ends, until `dropless filter stop`; take over what stays there
    #[arg(long)]
    stay: bool,
    /// Groups of addresses that rates remember
    #[arg(long, value_name = "N", default_value = "1M")]
    groups: String,
    /// Put rules in force that cut off the SSH session they are typed in
    #[arg(long)]
    force: bool,
    /// Write denied packets to this pcapng file, each with its rule and reason
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    sample: Option<PathBuf>,
    /// At most so many a second and processor; the rest is counted
    #[arg(long, value_name = "N", default_value = "1k", requires = "sample")]
    sample_rate: String,

    /// What this prints and where it writes
    #[command(flatten)]
    pub output: OutputArgs,
    /// How it is watched from outside
    #[command(flatten)]
    pub status: StatusArgs,
}

impl Args {
    /// The validated plan.
    pub fn plan(&self) -> Result<FilterPlan> {
        let per_second = number(&self.sample_rate, "--sample-rate", SAMPLES_MAX)?;
        Ok(FilterPlan {
            rules: self.rules.clone(),
            interface: self.dev.clone(),
            generic: self.mode == ModeArg::Generic,
            stay: self.stay,
            sample: self.sample.clone().map(|file| SamplePlan { file, per_second }),
            groups: groups(&self.groups)?,
            duration_ns: optional(self.duration.as_deref(), "--duration", nonzero_ns)?,
            force: self.force,
        })
    }
}
