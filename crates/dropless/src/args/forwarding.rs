//! What commands that forward between two ports take.

use std::num::NonZeroU32;
use std::path::Path;

use anyhow::{Result, anyhow};
use clap::Args;

use super::{DeviceArgs, ExplainArgs, number};
use crate::about::About as _;
use crate::plan::machine::parse_ports;
use crate::plan::{ForwardMode, ForwardPlan, VERSION, interval_ns, mac, nonzero_ns, optional};

/// Between two ports: the path, the machine, and what is measured.
#[derive(Args, Clone, Debug)]
pub struct ForwardingArgs {
    /// A tap by which this host stays on the first port's link: what is addressed to the port goes there; given again, the second's
    #[arg(long, value_name = "tap:NAME", help_heading = "Path")]
    pub kernel: Vec<String>,
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
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = number::<usize>, help_heading = "Machine")]
    pub burst: usize,
    /// Rings, buffers and devices
    #[command(flatten)]
    pub device: DeviceArgs,

    /// End after this long without a packet, once the first has come
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    pub idle_exit: Option<String>,
    /// Count flows, with room for so many of each queue and direction: the largest are told at the end, all are in flows.csv
    #[arg(long, value_name = "N", value_parser = number::<u32>, help_heading = "Measurement")]
    pub flows: Option<u32>,
    /// Exit 1 unless it holds, e.g. 'loss<0.001%', 'denied==0', 'tx_full==0'; repeat for several
    #[arg(long = "expect", value_name = "CONDITION", help_heading = "Measurement")]
    pub expect: Vec<String>,
    /// Length of a statistics interval, 1 ms and up [default: a 200th of --duration, 10ms to 1s]
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    pub interval: Option<String>,

    /// What is asked about stalls
    #[command(flatten)]
    pub explain: ExplainArgs,
}

impl ForwardingArgs {
    /// The flags that mean nothing where there are no two ports; `--force` means something there, too.
    pub const FLAGS: [&str; 17] = [
        "kernel",
        "to_mac",
        "eal",
        "wait",
        "queues",
        "cores",
        "burst",
        "descriptors",
        "buffers",
        "no_huge",
        "dpdk_tools",
        "idle_exit",
        "flows",
        "expect",
        "interval",
        "explain",
        "pause",
    ];

    /// The validated plan.
    pub fn plan(
        &self,
        ports: &[String],
        rules: Option<&Path>,
        mode: ForwardMode,
        duration: Option<&str>,
    ) -> Result<ForwardPlan> {
        let (mut ports, kernel) = (
            parse_ports(ports, "--port")?,
            parse_ports(&self.kernel, "--kernel")?,
        );
        ports.extend(kernel.iter().cloned());
        let macs = self.to_mac.iter().map(|text| mac(text, "--to-mac"));
        let duration_ns = optional(duration, "--duration", nonzero_ns)?;
        let plan = ForwardPlan {
            version: VERSION,
            command: "forward".into(),
            machine: self.device.plan(
                ports,
                self.eal.clone(),
                (self.cores.as_deref(), self.burst),
                &self.wait,
                Some(&self.explain),
            )?,
            queues: self.queues,
            mode,
            to_mac: macs.collect::<Result<_>>()?,
            rules: rules.map(Path::to_path_buf),
            kernel,
            flows: self.flows.map(flows).transpose()?,
            duration_ns,
            idle_exit_ns: optional(self.idle_exit.as_deref(), "--idle-exit", nonzero_ns)?,
            expect: self.expect.clone(),
            interval_ns: interval_ns(self.interval.as_deref(), duration_ns, |_| true)?,
        };
        plan.validate()?;
        Ok(plan)
    }
}

fn flows(room: u32) -> Result<NonZeroU32> {
    NonZeroU32::new(room)
        .ok_or_else(|| anyhow!("--flows 0 has room for none; leave it out, or use --flows 1000"))
        .about("--flows")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_force_means_nothing_without_two_ports() {
        let command = ForwardingArgs::augment_args(clap::Command::new("forwarding"));
        let own = command.get_arguments().map(|argument| argument.get_id().as_str());
        let mut own: Vec<&str> = own.filter(|id| *id != "force").collect();
        let mut named = ForwardingArgs::FLAGS.to_vec();
        own.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, own);
    }
}
