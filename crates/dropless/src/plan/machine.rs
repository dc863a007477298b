//! What `send` and `reflect` both need of the machine.

use std::num::NonZeroU16;

use anyhow::{Context as _, Result, ensure};
use dataplane::BURST_MAX;
use host::PortKind;
use host::cores::CoreSet;
use host::{Medium, PortTraits, PortUri};
use serde::{Deserialize, Serialize};

use super::QUEUES_MAX;
use crate::about::{About as _, bail_about, ensure_about};

/// What `send` and `reflect` both need of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachinePlan {
    /// Ports.
    pub ports: Vec<PortUri>,
    /// Further EAL arguments.
    pub eal: Option<String>,
    /// Worker cores; empty lets the run choose.
    pub cores: CoreSet,
    /// Packets a burst.
    pub burst: usize,
    /// Descriptors a queue.
    pub descriptors: u16,
    /// Packet buffers; `None` lets the run choose.
    pub buffers: Option<u32>,
    /// Ordinary pages even where hugepages are free.
    pub no_huge: bool,
    /// Processes of DPDK may attach to this one.
    #[serde(default)]
    pub dpdk_tools: bool,
    /// Take a device from the kernel although this machine is reached through it.
    #[serde(default)]
    pub force: bool,
    /// How long to wait for a link, ns.
    pub wait_ns: u64,
    /// Ask the kernel why workers stalled.
    #[serde(default)]
    pub explain: bool,
    /// A worker that does not poll for longer than this is stalled, ns.
    #[serde(default = "default_pause_ns")]
    pub pause_ns: u64,
}

/// Descriptors a queue, where the user does not say: what the neediest port wants.
pub fn default_descriptors(ports: &[PortUri]) -> u16 {
    ports
        .iter()
        .map(|port| port.kind.traits().descriptors_default)
        .max()
        .unwrap_or(1024)
}

fn default_pause_ns() -> u64 {
    MachinePlan::STALL_NS
}

impl MachinePlan {
    /// A worker that does not poll for longer is stalled, unless the plan says otherwise.
    pub const STALL_NS: u64 = 20_000;
    /// The same of workers that rest between their polls, which is no stall.
    pub const RESTS: u64 = u64::MAX;

    /// Whether a port is of a kind that is so.
    pub fn has(&self, is_so: fn(PortTraits) -> bool) -> bool {
        self.ports.iter().any(|port| is_so(port.kind.traits()))
    }

    /// Whether all ports that `flag` is for may have so many queues as it asks for.
    pub(super) fn check_queues(
        &self,
        flag: &'static str,
        queues: u16,
        is_for: fn(&PortUri) -> bool,
    ) -> Result<()> {
        ensure_about!(
            flag,
            queues <= QUEUES_MAX,
            "{flag} {queues} is more than DPDK has for a port, {QUEUES_MAX}; use fewer"
        );
        for port in self.ports.iter().filter(|port| is_for(port)) {
            let PortTraits {
                name,
                queues_max,
                more_queues,
                ..
            } = port.kind.traits();
            ensure_about!(
                flag,
                queues <= queues_max,
                "{flag} {queues}: port {port} is a {name}, which has {queues_max} at most; {more_queues}"
            );
            ensure_about!(
                flag,
                port.queues.is_none_or(|own| queues <= own.get()),
                "{flag} {queues}: port {port} has no more than its queues= says; write queues={queues} there, or use fewer"
            );
        }
        Ok(())
    }

    /// Queues of all ports, `each` where a port's name does not say.
    pub(super) fn queues_of_all(&self, each: u16) -> usize {
        let of_port = |port: &PortUri| usize::from(port.queues.map_or(each, NonZeroU16::get));
        self.ports.iter().map(of_port).sum()
    }

    /// Refuses more cores than have `most` things to do, which `those` tells.
    pub(super) fn check_cores(&self, most: usize, those: &str) -> Result<()> {
        let cores = self.cores.len();
        ensure_about!(
            "--cores",
            cores <= most,
            "--cores names {cores}, and at most {most} have something to do: {those}"
        );
        Ok(())
    }

    /// Refuses what sets up DPDK, where only sockets of the kernel carry packets.
    pub fn check_sockets(&self) -> Result<()> {
        let is_socket = |port: &PortUri| port.kind.traits().medium == Medium::Sockets;
        let Some(port) = self.ports.first().filter(|_| self.ports.iter().all(is_socket)) else {
            return Ok(());
        };
        for (flag, is_given) in [
            ("--eal", self.eal.is_some()),
            ("--dpdk-tools", self.dpdk_tools),
            ("--buffers", self.buffers.is_some()),
        ] {
            ensure_about!(
                flag,
                !is_given,
                "{flag} would do nothing: port {port} is a socket of the kernel, and DPDK is not started; leave it out, or use packet:IF or xdp:IF"
            );
        }
        Ok(())
    }

    pub(super) fn validate(&self) -> Result<()> {
        ensure!(
            !self.ports.is_empty(),
            "no port: give at least one --port; `dropless ports` lists what is here"
        );
        ensure_about!(
            "--burst",
            (1..=BURST_MAX / 2).contains(&self.burst),
            "--burst {} is not between 1 and {}",
            self.burst,
            BURST_MAX / 2
        );
        ensure_about!(
            "--descriptors",
            (64..=32768).contains(&self.descriptors),
            "--descriptors {} is not between 64 and 32768; 1024 is usual",
            self.descriptors
        );
        for port in &self.ports {
            let queues = port.queues.map_or(0, NonZeroU16::get);
            let PortTraits {
                name,
                queues_max,
                more_queues,
                ..
            } = port.kind.traits();
            ensure_about!(
                "--port",
                queues <= queues_max,
                "port {port} asks for {queues} queues, and a {name} has {queues_max} at most; {more_queues}"
            );
        }
        for (index, port) in self.ports.iter().enumerate() {
            if let Some(twin) = self.ports[..index].iter().find(|other| same_device(other, port)) {
                bail_about!(
                    "--port",
                    "ports {twin} and {port} are the same device; give each port once"
                );
            }
        }
        Ok(())
    }
}

pub(super) fn same_device(one: &PortUri, other: &PortUri) -> bool {
    match (&one.kind, &other.kind) {
        (PortKind::Ring { name: a, .. }, PortKind::Ring { name: b, .. })
        | (PortKind::Null { name: a, .. }, PortKind::Null { name: b, .. }) => a.is_some() && a == b,
        (
            PortKind::Xdp { interface: a, .. } | PortKind::Packet { interface: a, .. },
            PortKind::Xdp { interface: b, .. } | PortKind::Packet { interface: b, .. },
        ) => a == b,
        (PortKind::Memif { path: a, id: i, .. }, PortKind::Memif { path: b, id: j, .. }) => a == b && i == j,
        (a, b) => a == b,
    }
}

/// The ports, as the user names them by `flag`.
pub fn parse_ports(texts: &[String], flag: &'static str) -> Result<Vec<PortUri>> {
    texts
        .iter()
        .map(|text| text.parse::<PortUri>().about(flag))
        .collect()
}

/// The cores, as the user lists them; none for `None`.
pub fn parse_cores(text: Option<&str>) -> Result<CoreSet> {
    let Some(text) = text else {
        return Ok(CoreSet::default());
    };
    let list = |text: &str| text.parse::<CoreSet>().context("--cores").about("--cores");
    let cores = list(text)?;
    ensure_about!(
        "--cores",
        !cores.is_empty(),
        "--cores: the list is empty; write the cores as 0-3,5, or leave --cores out"
    );
    let mut seen = CoreSet::default();
    for part in text.split(',') {
        let part = list(part)?;
        if let Some(core) = part.common(&seen).iter().next() {
            bail_about!(
                "--cores",
                "--cores {text} lists core {core} twice; give each core once"
            );
        }
        seen = seen.with(&part);
    }
    Ok(cores)
}
