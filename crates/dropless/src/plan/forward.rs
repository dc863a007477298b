//! The plan of a `forward` run.

use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;
use host::{MacAddress, Medium, PortKind, PortUri};
use measure::{ForwardSummary, expect};
use serde::{Deserialize, Serialize};

use super::{MachinePlan, check_interval};
use crate::about::{About as _, bail_about, ensure_about};

/// Flows that a queue may remember: 1.5 GiB.
const FLOWS_MAX: u32 = 1 << 24;

/// What becomes of a frame's MAC addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ForwardMode {
    /// They stay as they are: a cable
    Io,
    /// From the port that the frame leaves by, to --to-mac
    Mac,
    /// They change places
    Swap,
}

impl ForwardMode {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::Mac => "mac",
            Self::Swap => "swap",
        }
    }
}

/// A `forward` run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForwardPlan {
    /// Version of this format.
    pub version: u32,
    /// Always `forward`.
    pub command: String,
    /// The machine's part; two ports, and behind them those of `kernel`.
    pub machine: MachinePlan,
    /// Queues a port and direction.
    pub queues: u16,
    /// What becomes of MAC addresses.
    pub mode: ForwardMode,
    /// To whom frames are sent that leave by the first port and by the second; with `mac` only.
    pub to_mac: Vec<MacAddress>,
    /// The rule file; without one every frame passes.
    pub rules: Option<PathBuf>,
    /// Taps by which the host has a part in what goes over the first port, and over the second.
    #[serde(default)]
    pub kernel: Vec<PortUri>,
    /// Flows that each queue remembers; nothing counts them where it is missing.
    #[serde(default)]
    pub flows: Option<NonZeroU32>,
    /// How long to forward, ns.
    pub duration_ns: Option<u64>,
    /// End after this long without a packet, ns.
    pub idle_exit_ns: Option<u64>,
    /// Conditions of success.
    pub expect: Vec<String>,
    /// Length of a statistics interval, ns.
    pub interval_ns: u64,
}

impl ForwardPlan {
    /// Refuses what cannot be.
    pub fn validate(&self) -> Result<()> {
        let ports = self.ports();
        ensure!(
            ports.len() == 2,
            "forward goes between two ports, and {} given; write --port A --port B (`dropless ports` lists what is here)",
            match ports.len() {
                0 => "none is".to_owned(),
                1 => format!("only {} is", ports[0]),
                more => format!("{more} are"),
            }
        );
        self.named(self.machine.validate())?;
        ensure_about!(
            "--queues",
            self.queues > 0,
            "a port needs at least one queue; use --queues 1"
        );
        self.machine
            .check_queues("--queues", self.queues, |port| port.queues.is_none())?;
        self.check_kernel()?;
        self.check_flows()?;
        check_interval(self.interval_ns)?;
        expect::check::<ForwardSummary>(&self.expect).about("--expect")?;
        ports.iter().try_for_each(check_port).about("--port")?;
        self.check_macs()?;
        let [one, other] = [&ports[0], &ports[1]].map(|port| self.queues_of(port));
        ensure!(
            one == other,
            "ports {} and {} have {one} and {other} queues, and each queue of one goes to one of the other; give both the same (--queues)",
            ports[0],
            ports[1]
        );
        self.machine.check_cores(
            2 * usize::from(one),
            "one for each queue and direction; name fewer, or use more --queues",
        )
    }

    /// What came of the ports: an error says that it is about `--port`, which may be wrong where there are taps, too.
    pub fn named<T>(&self, result: Result<T>) -> Result<T> {
        if self.kernel.is_empty() {
            result
        } else {
            result.about_none()
        }
    }

    /// The two ports.
    pub fn ports(&self) -> &[PortUri] {
        let ports = &self.machine.ports;
        &ports[..ports.len().saturating_sub(self.kernel.len())]
    }

    fn check_kernel(&self) -> Result<()> {
        ensure_about!(
            "--kernel",
            self.kernel.len() <= 2,
            "--kernel is given {} times, and there are two ports: once for each, the first port's first",
            self.kernel.len()
        );
        let shared = self.ports().iter().take(self.kernel.len());
        let mut shared = shared.filter(|port| matches!(port.kind, PortKind::Packet { .. }));
        if let Some(port) = shared.next() {
            bail_about!(
                "--kernel",
                "--kernel for port {port}: the kernel keeps that interface, and gets everything without a tap; leave --kernel out, or take the interface away: xdp:"
            );
        }
        for port in &self.kernel {
            ensure_about!(
                "--kernel",
                matches!(port.kind, PortKind::Tap { .. }),
                "--kernel {port} is no tap, by which the kernel gets frames; write --kernel tap:NAME"
            );
            ensure_about!(
                "--kernel",
                port.queues.is_none(),
                "--kernel {port} has as many queues as the ports; leave `queues` out"
            );
        }
        let mut shared = self.ports().iter().take(self.kernel.len());
        if let Some(port) = shared.find(|port| port.kind.traits().medium == Medium::Process) {
            bail_about!(
                "--kernel",
                "--kernel for port {port}: no host is reached by it; --kernel is for xdp: and pci: ports, which are taken away from the kernel"
            );
        }
        Ok(())
    }

    fn queues_of(&self, port: &PortUri) -> u16 {
        port.queues.map_or(self.queues, NonZeroU16::get)
    }

    fn check_flows(&self) -> Result<()> {
        let flows = self.flows.map_or(0, NonZeroU32::get);
        ensure_about!(
            "--flows",
            flows <= FLOWS_MAX,
            "--flows {flows} are more than {FLOWS_MAX} flows a queue; use fewer: what has no room is counted together"
        );
        Ok(())
    }

    fn check_macs(&self) -> Result<()> {
        let (given, is_mac) = (self.to_mac.len(), self.mode == ForwardMode::Mac);
        ensure_about!(
            "--to-mac",
            is_mac || given == 0,
            "--to-mac goes with --mode mac alone; add that, or leave --to-mac out"
        );
        ensure_about!(
            "--mode",
            !is_mac || given == 2,
            "--mode mac sends to a neighbour at each end, and {given} of 2 are given; write --to-mac MAC for what leaves by {} and a second one for what leaves by {}",
            self.machine.ports[0],
            self.machine.ports[1]
        );
        Ok(())
    }
}

/// Refuses a port that cannot forward.
fn check_port(port: &PortUri) -> Result<()> {
    let traits = port.kind.traits();
    match traits.medium {
        Medium::Sockets => bail!(
            "port {port} is a socket, which has no frames to hand on; forward from the interface below it: --port packet:INTERFACE"
        ),
        Medium::Files => bail!(
            "port {port} is a file, which has no other end to forward to; `dropless replay FILE` sends one, `dropless filter test RULES FILE` judges one, and `dropless capture` writes one"
        ),
        Medium::Process if traits.holds_sent && !traits.is_reflected => bail!(
            "port {port} gives back what is sent into it, and so it would go round for ever; use ring, into which a generator sends"
        ),
        _ => Ok(()),
    }
}
