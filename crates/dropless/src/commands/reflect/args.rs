//! Arguments of `dropless reflect`.

use std::net::IpAddr;

use anyhow::Result;

use crate::about::About as _;
use crate::args::{DeviceArgs, ExplainArgs, RunArgs, number};
use crate::plan::machine::parse_ports;
use crate::plan::{
    FAR_V4, FAR_V6, ReflectPlan, VERSION, interval_ns, kernel, nonzero_ns, optional, random_seed,
};

/// Return what arrives: the far end of a measurement
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless reflect --port xdp:eth1 --address 10.0.0.2         an ordinary host can ping it
  dropless reflect --port memif:/run/x.sock,server            the far end of a memif
  dropless reflect --port pci:0000:3b:00.1 --only-ours        probes only
  dropless reflect --port xdp:eth1 --fault drop=0.1%          loses on purpose, and says how many")]
pub struct Args {
    /// Port to reflect on; repeat for several
    #[arg(
        long = "port",
        short = 'p',
        value_name = "URI",
        required = true,
        help_heading = "Path"
    )]
    pub ports: Vec<String>,
    /// Further EAL arguments for DPDK, as one string
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, help_heading = "Path")]
    pub eal: Option<String>,
    /// Addresses whose ARP, NDP and echo requests are answered [default: 198.18.0.2,2001:2::2]
    #[arg(long, value_name = "IP,..", value_delimiter = ',', help_heading = "Path")]
    pub address: Vec<IpAddr>,
    /// How long to wait for a link or a peer before saying so; the run goes on waiting
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Path")]
    pub wait: String,
    /// Return probes only
    #[arg(long, help_heading = "Path")]
    pub only_ours: bool,
    /// Inject faults: drop=0.1%,duplicate=..,reorder=..,corrupt=..,delay=1%:5ms,limit=10kpps:200
    #[arg(long, value_name = "FAULTS", help_heading = "Path")]
    pub fault: Option<String>,
    /// Seed of the faults [default: random, printed]
    #[arg(long, value_name = "N", help_heading = "Path", requires = "fault")]
    pub seed: Option<u64>,

    /// Queues a port
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Machine")]
    pub queues: u16,
    /// Worker cores, e.g. 2-3,6 [default: chosen and printed]
    #[arg(long, value_name = "LIST", help_heading = "Machine")]
    pub cores: Option<String>,
    /// Packets a burst, at most
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = number::<usize>, help_heading = "Machine")]
    pub burst: usize,
    /// Rings, buffers and devices
    #[command(flatten)]
    pub device: DeviceArgs,

    /// How long to reflect, once the ports are open [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    pub duration: Option<String>,
    /// End after this long without a packet, once the first has come
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    pub idle_exit: Option<String>,
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

impl Args {
    /// The validated plan.
    pub fn plan(&self) -> Result<ReflectPlan> {
        let addresses = if self.address.is_empty() {
            vec![IpAddr::V4(FAR_V4), IpAddr::V6(FAR_V6)]
        } else {
            self.address.clone()
        };
        let mut ports = parse_ports(&self.ports, "--port")?;
        kernel::refuse_addresses(&ports, !self.address.is_empty())?;
        kernel::serve(&mut ports);
        let duration_ns = optional(self.duration.as_deref(), "--duration", nonzero_ns)?;
        let plan = ReflectPlan {
            version: VERSION,
            command: "reflect".into(),
            machine: self.device.plan(
                ports,
                self.eal.clone(),
                (self.cores.as_deref(), self.burst),
                &self.wait,
                Some(&self.explain),
            )?,
            addresses,
            only_ours: self.only_ours,
            fault: self
                .fault
                .as_deref()
                .map(str::parse)
                .transpose()
                .about("--fault")?,
            seed: self.seed.unwrap_or_else(random_seed),
            queues: self.queues,
            duration_ns,
            idle_exit_ns: optional(self.idle_exit.as_deref(), "--idle-exit", nonzero_ns)?,
            interval_ns: interval_ns(self.interval.as_deref(), duration_ns, |_| true)?,
        };
        plan.validate()?;
        Ok(plan)
    }
}
