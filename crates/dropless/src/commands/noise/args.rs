//! Arguments of `dropless noise`.

use crate::args::OutputArgs;
use crate::args::status::StatusArgs;

/// Poll on some cores without packets, and name what takes them away
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless noise --cores 2-3 --duration 30s        who takes cores 2 and 3, how often, for how long
  dropless noise --cores 2 --rate 14.88Mpps --ring 1024
                                                   what that would cost in packets
  dropless noise --cores 2 --json | jq '.cores[0].causes[0]'
                                                   the worst thief, for scripts

Exit codes: 0 measured; 1 measured, and packets would be lost at --rate; 2 could not measure.")]
pub struct Args {
    /// Cores to poll on, e.g. 2-3,6 [default: the one that send would choose, printed]
    #[arg(long, value_name = "LIST")]
    pub cores: Option<String>,
    /// How long
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub duration: String,
    /// Shorter gaps between two readings of the clock do not count as stalls
    #[arg(long, value_name = "TIME", default_value = "1us")]
    pub threshold: String,
    /// Say what the stalls would cost at this rate of received packets
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Receive descriptors for that
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub ring: u32,
    /// Rate at which the receiver empties a full ring [default: 1.25 times --rate]
    #[arg(long, value_name = "RATE", requires = "rate")]
    pub service: Option<String>,
    /// Only measure the stalls; do not ask the kernel for their causes
    #[arg(long)]
    pub no_trace: bool,

    /// What this prints and where it writes
    #[command(flatten)]
    pub output: OutputArgs,
    /// How it is watched from outside
    #[command(flatten)]
    pub status: StatusArgs,
}
