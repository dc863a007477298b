//! Groups of arguments that several subcommands share.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use host::PortUri;
use measure::units::parse_count;
use report::out::Console;

use crate::plan::machine::{default_descriptors, parse_cores};
use crate::plan::{MachinePlan, VerifyPlan, duration_ns_or_zero, stall_ns};
use crate::run::{Place, Settings};
use status::StatusArgs;

pub mod destination;
pub mod forwarding;
pub mod on_interface;
pub mod send_plan;
pub mod status;
pub mod stream;

/// Packets a burst, at most.
const BURST: usize = 64;

/// Where probes go: what every command that sends has.
#[derive(Args, Clone, Debug)]
pub struct PathArgs {
    /// Port to send from and receive on; repeat for several [default: ring]
    #[arg(long = "port", short = 'p', value_name = "URI", help_heading = "Path")]
    pub ports: Vec<String>,
    /// Further EAL arguments for DPDK, as one string
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, help_heading = "Path")]
    pub eal: Option<String>,
    /// Where probes go: IP or host, IP:PORT or IP:PORT-PORT ([IP]:PORT for IPv6) [default: 198.18.0.2:7]
    #[arg(long, value_name = "IP[:PORT[-PORT]]", help_heading = "Path")]
    pub to: Option<String>,
    /// Where probes come from; several ports count up from it [default: 198.18.0.1:49152 or 2001:2::1]
    #[arg(long, value_name = "IP[:PORT]", help_heading = "Path")]
    pub from: Option<String>,
    /// Destination MAC address [default: asked for by ARP or NDP]
    #[arg(long, value_name = "MAC", help_heading = "Path")]
    pub to_mac: Option<String>,
    /// Source MAC address [default: the port's own]
    #[arg(long, value_name = "MAC", help_heading = "Path")]
    pub from_mac: Option<String>,
    /// Neighbour to send through, where `--to` is not on this link
    #[arg(long, value_name = "IP", help_heading = "Path")]
    pub via: Option<IpAddr>,
    /// VLAN id; two ids make QinQ (outer,inner)
    #[arg(long, value_name = "ID[,ID]", value_delimiter = ',', help_heading = "Path")]
    pub vlan: Vec<u16>,
    /// How long to wait for a link or a peer to come up, and in a run by --count to come back
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Path")]
    pub wait: String,
}

/// What probes look like and how they are judged: what every command that sends has.
#[derive(Args, Clone, Debug)]
pub struct ProbeArgs {
    /// Flows a stream: destination ports of --to, then source ports, then source addresses count up
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Load")]
    pub flows: String,
    /// Packets a burst, at most
    #[arg(long, value_name = "N", default_value_t = BURST, value_parser = number::<usize>, help_heading = "Load")]
    pub burst: usize,
    /// Scheduled packets that a late sender may still catch up on; the rest is unsent [default: the transmit ring]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub backlog: Option<String>,
    /// How long a packet may be in flight, and how long to wait for the last ones
    #[arg(long, value_name = "TIME", default_value = "2s", help_heading = "Load")]
    pub drain: String,
    /// Seed of everything random [default: random, printed]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub seed: Option<u64>,
    /// Time to live, or hop limit
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Load")]
    pub ttl: u8,
    /// Differentiated services code point
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = code_point, help_heading = "Load")]
    pub dscp: u8,
    /// What is checked in a frame that comes back
    #[arg(long, value_enum, default_value_t = VerifyPlan::Checksum, help_heading = "Measurement")]
    pub verify: VerifyPlan,
    /// Inject faults in the in-process reflector: drop=0.1%,duplicate=..,reorder=..,corrupt=..,delay=1%:5ms,limit=10kpps:200
    #[arg(long, value_name = "FAULTS", help_heading = "Measurement")]
    pub fault: Option<String>,
}

/// Queues, cores and memory: what every command that sends has.
#[derive(Args, Clone, Debug)]
pub struct MachineArgs {
    /// Transmit queues a port
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Machine")]
    pub tx_queues: u16,
    /// Receive queues a port (RSS spreads flows over them)
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Machine")]
    pub rx_queues: u16,
    /// Worker cores, e.g. 2-3,6; shared out between sending and receiving [default: chosen and printed]
    #[arg(long, value_name = "LIST", help_heading = "Machine")]
    pub cores: Option<String>,
    /// Let the NIC fill in UDP checksums
    #[arg(long, help_heading = "Machine")]
    pub checksum_offload: bool,
    /// Rings, buffers and devices
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Rings, buffers and devices: what every command that moves packets has.
#[derive(Args, Clone, Debug)]
pub struct DeviceArgs {
    /// Descriptors a queue [default: 1024; 4096 with xdp ports]
    #[arg(long, value_name = "N", value_parser = number::<u16>, help_heading = "Machine")]
    pub descriptors: Option<u16>,
    /// Packet buffers
    #[arg(long, value_name = "N", value_parser = number::<u32>, help_heading = "Machine")]
    pub buffers: Option<u32>,
    /// Ordinary pages even where hugepages are free
    #[arg(long, help_heading = "Machine")]
    pub no_huge: bool,
    /// Let DPDK's own tools attach (dpdk-dumpcap, dpdk-pdump, dpdk-proc-info); needs hugepages
    #[arg(long, conflicts_with = "no_huge", help_heading = "Machine")]
    pub dpdk_tools: bool,
    /// Take a NIC from the kernel although this machine is reached through it
    #[arg(long, help_heading = "Machine")]
    pub force: bool,
}

/// What is asked about the stalls of the workers.
#[derive(Args, Debug, Clone)]
pub struct ExplainArgs {
    /// Ask the kernel why workers stalled, and say what each cause cost in packets
    #[arg(long, help_heading = "Measurement")]
    pub explain: bool,
    /// A worker that does not poll for longer than this is stalled: a row of stalls.csv
    #[arg(
        long,
        value_name = "TIME",
        default_value = "20us",
        help_heading = "Measurement"
    )]
    pub pause: String,
}

/// Where the results go.
#[derive(Args, Debug, Clone)]
pub struct OutputArgs {
    /// Print one JSON object on stdout; what is for people goes to stderr
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// No display and no report
    #[arg(long, short = 'q', help_heading = "Output")]
    pub quiet: bool,
    /// Where run directories are made
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Output")]
    pub runs: PathBuf,
    /// What this run is called in its result, in reports and in lists
    #[arg(long, value_name = "LABEL", value_parser = label, help_heading = "Output")]
    pub name: Option<String>,
}

/// Characters of a label at most: it stands in tables.
const LABEL_MAX: usize = 60;

/// What a run may be called.
fn label(text: &str) -> Result<String, String> {
    match text {
        _ if text.trim().is_empty() => Err("a name has letters; leave --name out for none".to_owned()),
        _ if text.contains(report::input::is_unsafe) => {
            Err("a name is one line, without control characters".to_owned())
        }
        _ if text.chars().count() > LABEL_MAX => {
            Err(format!("a name stands in tables; {LABEL_MAX} characters at most"))
        }
        _ => Ok(text.trim().to_owned()),
    }
}

/// What every run of packets has: what it prints, where it writes, and how it is watched.
#[derive(Args, Debug, Clone)]
pub struct RunArgs {
    /// What this prints and where it writes
    #[command(flatten)]
    pub output: OutputArgs,
    /// How it is watched from outside
    #[command(flatten)]
    pub status: StatusArgs,
    /// Show DPDK's own log
    #[arg(long, help_heading = "Output")]
    pub verbose: bool,
    /// Do not look at the machine for what may cost packets before the start (`dropless doctor`)
    #[arg(long, help_heading = "Output")]
    pub no_doctor: bool,
}

/// A number of a flag, with an optional k, M or G.
pub fn number<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let number = parse_count(text).map_err(|error| error.to_string())?;
    N::try_from(number).map_err(|_| "it is far too many".to_owned())
}

/// A differentiated services code point: six bits.
fn code_point(text: &str) -> Result<u8, String> {
    let number = text.parse().ok().filter(|number| *number < 64);
    number.ok_or_else(|| "write a number from 0 to 63".to_owned())
}

impl RunArgs {
    /// The same, checked and without the command line.
    pub fn settings(&self) -> Result<Settings> {
        Ok(Settings {
            console: self.output.console(),
            place: self.output.place(),
            status: self.status.settings()?,
            verbose: self.verbose,
            has_doctor: !self.no_doctor,
        })
    }
}

impl DeviceArgs {
    /// The machine's part of a plan, with what a command may say of it in words of its own; links and peers are waited for
    /// as `--wait` says.
    pub fn plan(
        &self,
        ports: Vec<PortUri>,
        eal: Option<String>,
        (cores, burst): (Option<&str>, usize),
        wait: &str,
        stalls: Option<&ExplainArgs>,
    ) -> Result<MachinePlan> {
        let plan = MachinePlan {
            descriptors: self.descriptors.unwrap_or_else(|| default_descriptors(&ports)),
            ports,
            eal,
            cores: parse_cores(cores)?,
            burst,
            buffers: self.buffers,
            no_huge: self.no_huge,
            dpdk_tools: self.dpdk_tools,
            force: self.force,
            wait_ns: duration_ns_or_zero(wait, "--wait")?,
            explain: stalls.is_some_and(|stalls| stalls.explain),
            pause_ns: stalls.map_or(Ok(MachinePlan::STALL_NS), |stalls| stall_ns(&stalls.pause))?,
        };
        plan.check_sockets()?;
        Ok(plan)
    }
}

impl OutputArgs {
    /// Where its run directory is made, and what the run is called.
    pub fn place(&self) -> Place {
        Place {
            runs: self.runs.clone(),
            label: self.name.clone(),
        }
    }

    /// Who is told what.
    pub fn console(&self) -> Console {
        Console {
            json: self.json,
            quiet: self.quiet,
        }
    }
}
