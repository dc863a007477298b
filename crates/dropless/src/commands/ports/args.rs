//! Arguments of `dropless ports`.

/// List everything on this machine that could carry packets
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless ports            what is here, whether it can be used now, and the command that changes it
  dropless ports --json     the same for scripts")]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
