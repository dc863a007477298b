//! Arguments of `dropless capture`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;
use measure::units::parse_count;

use crate::about::{About as _, bail_about, ensure_about};
use crate::args::{DeviceArgs, ExplainArgs, RunArgs, number};
use crate::plan::machine::parse_ports;
use crate::plan::{
    AttachPlan, CapturePlan, FilesPlan, RingPlan, VERSION, bytes, interval_ns, nonzero_count, nonzero_ns,
    optional,
};

/// How long `--order bounded` waits, where nothing else is said.
const PATIENCE_NS: u64 = 1_000_000;

/// What means nothing where there are no ports: taps are read without DPDK, by a worker that rests, so that none of its stalls
/// are any. `--no-huge` and `--no-doctor` say what is done then anyway.
const OF_PORTS: [&str; 10] = [
    "ports",
    "eal",
    "wait",
    "queues",
    "descriptors",
    "buffers",
    "dpdk_tools",
    "force",
    "explain",
    "pause",
];

/// What is done about a queue that says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OrderArg {
    /// It is waited for: the stream is sorted
    Strict,
    /// It is waited for a moment (--patience); what it then has is out of order, and counted
    Bounded,
}

/// Take packets from many queues, in the order of their time stamps, into shared memory and files
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless capture                                                embedded ring, with a generator at its other end
  dropless capture --port packet:eth1 --to eth1.pcapng            what arrives, until Ctrl-C
  dropless capture --port packet:eth1 --to dns.pcapng udp port 53   what tcpdump would call for
  dropless capture --port packet:eth1 --to a.pcapng --count 1000  the first thousand
  dropless capture --port pci:0000:3b:00.0 --port pci:0000:3b:00.1 --queues 4 --to both.pcapng
  dropless capture --port packet:eth1 --stdout | tshark -i -      into any program that reads pcapng
  dropless capture --port xdp:eth1 --to ring.pcapng --file-size 1G --files 10   the newest 10 GB
  dropless capture --attach 4711 --stdout | tshark -i -           what a run sees

Ports of an interface have what arrives there, not what this host sends. xdp: takes it away
from the kernel meanwhile (also from ping); packet: leaves it there.

Exit codes: 0 nothing was lost; 1 frames were lost before the ring, or packets by a consumer;
2 nothing came, or the numbers cannot be believed. With --expect conditions decide.")]
pub struct Args {
    /// What to capture, in the syntax of tcpdump, as --filter
    #[arg(value_name = "FILTER", conflicts_with = "filter")]
    pub words: Vec<String>,

    /// Port to capture from; repeat for several [default: ring, with a generator at its other end]
    #[arg(long = "port", short = 'p', value_name = "URI", help_heading = "Path")]
    pub ports: Vec<String>,
    /// Look into a running send, reflect, replay, forward or guard --port: its process, or its run directory
    #[arg(long, value_name = "RUN|PID", conflicts_with_all = OF_PORTS, help_heading = "Path")]
    pub attach: Option<String>,
    /// What of its frames: those that it receives, those that it sends, or both [default: both]
    #[arg(long, value_enum, value_name = "WAY", help_heading = "Path")]
    pub direction: Option<Way>,
    /// Further EAL arguments for DPDK, as one string
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, help_heading = "Path")]
    pub eal: Option<String>,
    /// How long to wait for a link or a peer before saying so; the run goes on waiting
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Path")]
    pub wait: String,

    /// File of pcapng to write
    #[arg(long, short = 'w', value_name = "FILE", help_heading = "Capture")]
    pub to: Option<PathBuf>,
    /// Let other processes join the shared memory, at a socket of this name in /run/dropless, or at this path
    #[arg(long, value_name = "NAME", help_heading = "Capture")]
    pub ring: Option<PathBuf>,
    /// Let a group join it, too
    #[arg(long, value_name = "GROUP", requires = "ring", help_heading = "Capture")]
    pub ring_group: Option<String>,
    /// Stream pcapng to standard output, for tshark -i -, tcpdump -r - and others
    #[arg(long, conflicts_with = "json", help_heading = "Capture")]
    pub stdout: bool,
    /// Begin a new file when one has this many bytes
    #[arg(long, value_name = "BYTES", requires = "to", help_heading = "Capture")]
    pub file_size: Option<String>,
    /// Begin a new file after this long
    #[arg(long, value_name = "TIME", requires = "to", help_heading = "Capture")]
    pub file_time: Option<String>,
    /// Keep only the newest so many files
    #[arg(long, value_name = "N", requires = "to", help_heading = "Capture")]
    pub files: Option<usize>,
    /// Compress each file with zstd once it is closed
    #[arg(long, requires = "to", help_heading = "Capture")]
    pub compress: bool,
    /// Bytes kept of each packet
    #[arg(
        long,
        short = 's',
        value_name = "BYTES",
        default_value_t = super::WHOLE,
        help_heading = "Capture"
    )]
    pub snaplen: u32,
    /// What to capture, in the syntax of tcpdump, e.g. 'udp port 53 and net 10.0.0.0/8'
    #[arg(long, short = 'f', value_name = "FILTER", help_heading = "Capture")]
    pub filter: Option<String>,
    /// Capture one flow of N, whole and in both directions: by a hash of addresses, protocol and ports
    #[arg(long, value_name = "1/N", help_heading = "Capture")]
    pub sample: Option<String>,
    /// For a queue that says nothing: wait, so that all is sorted, or wait no longer than --patience [default: strict]
    #[arg(
        long,
        value_enum,
        value_name = "strict|bounded",
        hide_possible_values = true,
        hide_default_value = true,
        default_value_t = OrderArg::Strict,
        help_heading = "Capture"
    )]
    pub order: OrderArg,
    /// How long --order bounded waits [default: 1ms]
    #[arg(long, value_name = "TIME", help_heading = "Capture")]
    pub patience: Option<String>,
    /// Shared memory for packets that consumers have not taken yet
    #[arg(long, value_name = "BYTES", default_value = "64MiB", help_heading = "Capture")]
    pub ring_size: String,

    /// Receive queues a port (RSS spreads flows over them)
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Machine")]
    pub queues: u16,
    /// Worker cores, e.g. 2-4: one does all; of more the first merges and the others receive [default: one, chosen and printed]
    #[arg(long, value_name = "LIST", help_heading = "Machine")]
    pub cores: Option<String>,
    /// Packets a burst, at most
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = number::<usize>, help_heading = "Machine")]
    pub burst: usize,
    /// Rings, buffers and devices
    #[command(flatten)]
    pub device: DeviceArgs,

    /// End after so many packets
    #[arg(long, short = 'c', value_name = "N", help_heading = "Measurement")]
    pub count: Option<String>,
    /// How long to capture, once the ports are open [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    pub duration: Option<String>,
    /// End after this long without a packet, once the first has come
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    pub idle_exit: Option<String>,
    /// Exit 1 unless it holds, e.g. 'loss<0.001%', 'captured>1M', 'late==0'; repeat for several
    #[arg(long = "expect", value_name = "CONDITION", help_heading = "Measurement")]
    pub expect: Vec<String>,
    /// Length of a statistics interval, 1 ms and up [default: a 200th of --duration, 10ms to 1s]
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    pub interval: Option<String>,

    /// What is asked about stalls
    #[command(flatten)]
    pub explain: ExplainArgs,
    /// What this prints, where it writes, and how it is watched
    #[command(flatten)]
    pub run: RunArgs,
}

/// Which frames of a run are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "each would make the help page a long one")]
pub enum Way {
    In,
    Out,
    Both,
}

impl Args {
    /// The validated plan.
    pub fn plan(&self, attach: Option<AttachPlan>) -> Result<CapturePlan> {
        // Not `requires` of clap, which asks for no --attach beside what --attach conflicts with.
        ensure_about!(
            "--direction",
            self.direction.is_none() || attach.is_some(),
            "--direction is of the run that --attach looks into, and ports have what arrives; leave it out"
        );
        let ring = bytes(&self.ring_size, "--ring-size")?;
        let mut ports = parse_ports(&self.ports, "--port")?;
        if ports.is_empty() && attach.is_none() {
            ports.push("ring".parse()?);
        }
        let duration_ns = optional(self.duration.as_deref(), "--duration", nonzero_ns)?;
        let plan = CapturePlan {
            version: VERSION,
            command: "capture".into(),
            machine: self.device.plan(
                ports,
                self.eal.clone(),
                (self.cores.as_deref(), self.burst),
                &self.wait,
                Some(&self.explain),
            )?,
            attach,
            queues: self.queues,
            snap_len: self.snaplen,
            filter: self.expression(),
            sample: self.sample.as_deref().map(one_in).transpose().about("--sample")?,
            patience_ns: self.patience()?,
            ring: RingPlan {
                door: self.ring.as_deref().map(capture::ring::share::door_at),
                group: self
                    .ring_group
                    .as_deref()
                    .map(group)
                    .transpose()
                    .about("--ring-group")?,
                ..RingPlan::of_bytes(ring, &self.ring_size)?
            },
            files: self.files()?,
            count: optional(self.count.as_deref(), "--count", nonzero_count)?,
            duration_ns,
            idle_exit_ns: optional(self.idle_exit.as_deref(), "--idle-exit", nonzero_ns)?,
            expect: self.expect.clone(),
            interval_ns: interval_ns(self.interval.as_deref(), duration_ns, |_| true)?,
        };
        plan.validate()?;
        Ok(plan)
    }

    /// The filter: the flag's, or the words of the command line.
    fn expression(&self) -> Option<String> {
        let words = self.words.join(" ");
        self.filter.clone().or((!words.is_empty()).then_some(words))
    }

    fn patience(&self) -> Result<Option<u64>> {
        let patience = optional(self.patience.as_deref(), "--patience", nonzero_ns)?;
        match self.order {
            OrderArg::Bounded => Ok(Some(patience.unwrap_or(PATIENCE_NS))),
            OrderArg::Strict if patience.is_none() => Ok(None),
            OrderArg::Strict => {
                bail_about!(
                    "--patience",
                    "--patience is how long --order bounded waits; add that, or leave it out"
                )
            }
        }
    }

    fn files(&self) -> Result<Option<FilesPlan>> {
        let Some(path) = &self.to else { return Ok(None) };
        ensure_about!(
            "--to",
            path.as_os_str() != "-",
            "--to - is no file; use --stdout, which streams pcapng to standard output"
        );
        Ok(Some(FilesPlan {
            path: path.clone(),
            size: optional(self.file_size.as_deref(), "--file-size", bytes)?,
            every_ns: optional(self.file_time.as_deref(), "--file-time", nonzero_ns)?,
            files: self.files,
            compress: self.compress,
        }))
    }
}

/// `1/N`.
fn one_in(text: &str) -> Result<u64> {
    let flows = text.strip_prefix("1/").and_then(|flows| parse_count(flows).ok());
    flows.with_context(|| format!("--sample {text}: write it as 1/10 for every tenth flow"))
}

/// The id of a group.
fn group(name: &str) -> Result<u32> {
    let found = nix::unistd::Group::from_name(name).context("--ring-group")?;
    let found = found.with_context(|| format!("--ring-group {name}: there is no such group"))?;
    Ok(found.gid.as_raw())
}
