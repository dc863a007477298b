//! Arguments of `dropless compare`.

use std::net::IpAddr;

use crate::args::OutputArgs;
use crate::args::status::StatusArgs;

/// Measure kernel sockets, AF_PACKET, AF_XDP and DPDK on this machine, and recommend one
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless compare                      every way that works here, over a virtual wire of its own
  dropless compare --dry-run            what would be tried, what is missing, how long it takes
  dropless compare --rate 300kpps       which way to use for that rate
  dropless compare --methods kernel,kernel-mmsg --firewall-rules 50
                                        what 50 firewall rules cost the kernel's sockets
  dropless compare --far 10.0.0.2       over the real wire to where `dropless reflect` runs

Exit codes: 0 measured; 1 measured, and no way to a network carries --rate, or anything, without loss; 2 could not measure.")]
pub struct Args {
    /// The rate that you need: it is measured, and the recommendation is for it
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Offered rates at which loss is measured
    #[arg(long, value_name = "LIST", default_value = "20kpps,100kpps,500kpps")]
    pub rates: String,
    /// Rate at which latency is measured: one that every way carries
    #[arg(long, value_name = "RATE", default_value = "10kpps")]
    pub latency_rate: String,
    /// Ways to try [default: every one that is possible here]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        help = "Ways to try: kernel, kernel-mmsg, kernel-uring, packet, xdp, memif, ports [default: all]"
    )]
    pub methods: Vec<String>,
    /// Bytes of a frame, with FCS [default: 64, over IPv6 84]
    #[arg(long, value_name = "BYTES")]
    pub size: Option<usize>,
    /// How long each trial sends
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub duration: String,
    /// Trials that look for the highest rate without loss, at most, for each way
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub trials: u32,
    /// Firewall rules (nftables) that each packet passes on the kernel's path, in the namespaces of the virtual wire
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "far")]
    pub firewall_rules: u32,
    /// Two cores: that of the sender and that of the reflector [default: chosen, printed]
    #[arg(long, value_name = "LIST")]
    pub cores: Option<String>,
    /// Another machine, where `dropless reflect` runs, instead of a virtual wire
    #[arg(long, value_name = "ADDR")]
    pub far: Option<IpAddr>,
    /// A further port to compare, such as pci:0000:3b:00.0; without --far, --far-port is its other end
    #[arg(long, value_name = "URI")]
    pub near_port: Option<String>,
    /// Where dropless reflects what --near-port sends
    #[arg(long, value_name = "URI", requires = "near_port", conflicts_with = "far")]
    pub far_port: Option<String>,
    /// Say what would be tried and what is missing, and do nothing
    #[arg(long)]
    pub dry_run: bool,

    /// What this prints and where it writes
    #[command(flatten)]
    pub output: OutputArgs,
    /// How it is watched from outside
    #[command(flatten)]
    pub status: StatusArgs,
}
