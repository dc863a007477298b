//! Arguments of `dropless read`.

use std::path::PathBuf;

use clap::{ArgGroup, ValueEnum, ValueHint};
use dissect::TimeFormat;

/// Print packets of capture files, or of a running capture, one line each; or who talks to whom
#[derive(clap::Args, Debug)]
#[command(group(ArgGroup::new("statistics").args(["top", "connections"]).multiple(true)))]
#[command(after_help = "Examples:
  dropless read a.pcapng                        one line a packet, like tcpdump -n
  dropless read a.pcap.gz b.pcapng --count 10   the first ten of both, compressed or not
  dropless read a.pcapng -f 'udp port 53'       what tcpdump would show of it
  dropless read a.pcapng --top 10               the addresses with most bytes
  dropless read a.pcapng --connections          who talked to whom, each way, the most bytes first
  dropless read a.pcapng --json | jq -r .source
  dropless capture --port xdp:eth1 --ring uplink    and in another terminal:
  dropless read uplink                          what that captures, live
  tcpdump -i eth0 -w - | dropless read -        from another program

Exit codes: 0 all was read, also of a capture whose writer was killed before it
ended the file, which a line on standard error says; 1 a ring overwrote packets
before they were read; 2 what was asked for cannot be read, or not to its end.")]
pub struct Args {
    /// Capture file, - for standard input, or the name or socket of a running capture's --ring
    #[arg(value_name = "FILE|RING", required = true, value_hint = ValueHint::FilePath)]
    pub sources: Vec<PathBuf>,

    /// Only packets that pass, in the syntax of tcpdump, e.g. 'udp port 53 and net 10.0.0.0/8'
    #[arg(long, short = 'f', value_name = "FILTER")]
    pub filter: Option<String>,
    /// End after so many packets
    #[arg(long, short = 'c', value_name = "N")]
    pub count: Option<String>,
    /// Print JSON, one object a line
    #[arg(long)]
    pub json: bool,

    /// How times are written: clock (time of day), date (with the date) or epoch (seconds since 1970) [default: clock]
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        hide_possible_values = true,
        conflicts_with = "json",
        help_heading = "Lines"
    )]
    pub time: Option<Time>,
    /// Write times in UTC [default: the local time zone]
    #[arg(long, help_heading = "Lines")]
    pub utc: bool,
    /// Show addresses of Ethernet and lengths of frames, too
    #[arg(long, short = 'e', conflicts_with_all = ["json", "top", "connections"], help_heading = "Lines")]
    pub ethernet: bool,

    /// Instead of packets, print the N addresses with most bytes
    #[arg(long, value_name = "N", help_heading = "Statistics")]
    pub top: Option<String>,
    /// Instead of packets, print connections by protocol, addresses and ports
    #[arg(long, help_heading = "Statistics")]
    pub connections: bool,
    /// Addresses and connections remembered at once; beyond, the longest unseen is forgotten, and counted
    #[arg(
        long,
        value_name = "N",
        default_value = "1M",
        requires = "statistics",
        help_heading = "Statistics"
    )]
    pub flows_max: String,

    /// Of a ring: hold up the capture rather than let it overwrite what was not read yet
    #[arg(long, help_heading = "Ring")]
    pub lossless: bool,
}

/// What `--time` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Time {
    /// The time of day
    Clock,
    /// With the date
    Date,
    /// Seconds since 1970
    Epoch,
}

impl Time {
    /// As lines have it.
    pub fn format(self) -> TimeFormat {
        match self {
            Self::Clock => TimeFormat::Clock,
            Self::Date => TimeFormat::Date,
            Self::Epoch => TimeFormat::Epoch,
        }
    }
}
