//! Arguments of `dropless doctor`.

/// Examine this machine for what takes packets from a program that polls
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless doctor                                   what would disturb a run here, and what mends it
  dropless doctor --cores 2-3 --port xdp:eth1       for these cores and this port
  dropless doctor --rate 2Mpps --descriptors 4096   whether that ring outlasts the worst stall here
  dropless doctor --watch 10s --json                watch the counters for longer; for scripts

It changes nothing.
Exit codes: 0 all is good; 1 something is not; 2 could not examine.")]
pub struct Args {
    /// Cores that shall poll, e.g. 2-3,6 [default: proposed and printed]
    #[arg(long, value_name = "LIST")]
    pub cores: Option<String>,
    /// Port that shall be used; repeat for several
    #[arg(long = "port", short = 'p', value_name = "URI")]
    pub ports: Vec<String>,
    /// Packets per second that arrive at each port, e.g. 2Mpps [default: its line rate]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Receive descriptors of each queue [default: what send and reflect take]
    #[arg(long, value_name = "N", value_parser = crate::args::number::<u16>)]
    pub descriptors: Option<u16>,
    /// How long the counters are watched, and then how long a loop looks for stalls; 0 for neither
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub watch: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
