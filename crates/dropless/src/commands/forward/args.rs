//! Arguments of `dropless forward`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use anyhow::Result;

use crate::args::{DeviceArgs, ExplainArgs, RunArgs};
use crate::plan::machine::parse_ports;
use crate::plan::{ForwardMode, ForwardPlan, MachinePlan, VERSION, mac, nonzero_ns, optional, stall_ns};

/// Hand frames on from port to port, by rules: a bump in the wire
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  dropless forward --port xdp:eth1 --port xdp:eth2                     a cable that counts
  dropless forward --port xdp:eth1 --port xdp:eth2 --rules edge.rules  and lets through what the rules allow
  dropless forward --port memif:/run/a.sock,server --port pci:0000:3b:00.0 --queues 2 --cores 2-5
  dropless forward --port packet:eth1 --port packet:eth2 --mode mac --to-mac 02:00:00:00:00:0a --to-mac 02:00:00:00:00:0b
  dropless forward --port xdp:eth1 --port xdp:eth2 --flows 1000000     and says who talked to whom
  dropless forward --port xdp:eth1 --port xdp:eth2 --kernel tap:host1  and the host is still reached by eth1's address
  kill -HUP PID                                                        reads the rules again: no frame meets half a set

The rule language: docs/guide/rules.md; `dropless filter check` looks a file over.

Exit codes: 0 nothing was lost (what a rule denies is no loss); 1 frames were lost;
2 nothing came, or the numbers cannot be believed. With --expect conditions decide.")]
pub struct Args {
    /// The two ports: what comes in by one leaves by the other
    #[arg(
        long = "port",
        short = 'p',
        value_name = "URI",
        required = true,
        help_heading = "Path"
    )]
    pub ports: Vec<String>,
    /// Which frames pass, by a rule file; SIGHUP reads it again [default: all]
    #[arg(long, short = 'r', value_name = "FILE", help_heading = "Path")]
    pub rules: Option<PathBuf>,
    /// A tap by which this host stays on the first port's link: what is addressed to the port goes there; given again, the second's
    #[arg(long, value_name = "tap:NAME", help_heading = "Path")]
    pub kernel: Vec<String>,
    /// MAC addresses: as they are, from the port that a frame leaves by to --to-mac, or swapped
    #[arg(
        long,
        value_enum,
        value_name = "io|mac|swap",
        hide_possible_values = true,
        default_value_t = ForwardMode::Io,
        help_heading = "Path"
    )]
    pub mode: ForwardMode,
    /// With --mode mac: whom frames are sent to that leave by the first port; given again, by the second
    #[arg(long, value_name = "MAC", help_heading = "Path")]
    pub to_mac: Vec<String>,
    /// Further EAL arguments for DPDK, as one string
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, help_heading = "Path")]
    pub eal: Option<String>,
    /// How long to wait for a link or a peer before saying so; the run goes on waiting
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Path")]
    pub wait: String,

    /// Queues a port and direction: each goes to the one of the same number of the other port
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Machine")]
    pub queues: u16,
    /// Worker cores, e.g. 2-3: one does all; of two each has a direction [default: chosen and printed]
    #[arg(long, value_name = "LIST", help_heading = "Machine")]
    pub cores: Option<String>,
    /// Packets a burst, at most
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Machine")]
    pub burst: usize,
    /// Rings, buffers and devices
    #[command(flatten)]
    pub device: DeviceArgs,

    /// How long to forward, once the ports are open [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    pub duration: Option<String>,
    /// End after this long without a packet, once the first has come
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    pub idle_exit: Option<String>,
    /// Count flows, so many of each queue and direction: the largest are told at the end, all are in flows.csv
    #[arg(long, value_name = "N", help_heading = "Measurement")]
    pub flows: Option<NonZeroU32>,
    /// Exit 1 unless it holds, e.g. 'loss<0.001%', 'denied==0', 'tx_full==0'; repeat for several
    #[arg(long = "expect", value_name = "CONDITION", help_heading = "Measurement")]
    pub expect: Vec<String>,
    /// Length of a statistics interval, 1 ms and up
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Measurement")]
    pub interval: String,

    /// What is asked about stalls
    #[command(flatten)]
    pub explain: ExplainArgs,
    /// What this prints, where it writes, and how it is watched
    #[command(flatten)]
    pub run: RunArgs,
}

impl Args {
    /// The validated plan.
    pub fn plan(&self) -> Result<ForwardPlan> {
        let (mut ports, kernel) = (parse_ports(&self.ports)?, parse_ports(&self.kernel)?);
        ports.extend(kernel.iter().cloned());
        let macs = self.to_mac.iter().map(|text| mac(text, "--to-mac"));
        let plan = ForwardPlan {
            version: VERSION,
            command: "forward".into(),
            machine: MachinePlan {
                eal: self.eal.clone(),
                burst: self.burst,
                explain: self.explain.explain,
                pause_ns: stall_ns(&self.explain.pause)?,
                ..self.device.plan(ports, self.cores.as_deref(), &self.wait)?
            },
            queues: self.queues,
            mode: self.mode,
            to_mac: macs.collect::<Result<_>>()?,
            rules: self.rules.clone(),
            kernel,
            flows: self.flows,
            duration_ns: optional(self.duration.as_deref(), "--duration", nonzero_ns)?,
            idle_exit_ns: optional(self.idle_exit.as_deref(), "--idle-exit", nonzero_ns)?,
            expect: self.expect.clone(),
            interval_ns: nonzero_ns(&self.interval, "--interval")?,
        };
        plan.validate()?;
        Ok(plan)
    }
}
