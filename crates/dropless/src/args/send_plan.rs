//! The plan of a run that sends, from the groups of arguments that every sending command has.

use anyhow::Result;
use host::{Medium, PortUri};

use super::stream;
use super::{ExplainArgs, MachineArgs, PathArgs, ProbeArgs};
use crate::about::About as _;
use crate::plan::machine::parse_ports;
use crate::plan::{
    SendPlan, StreamPlan, VERSION, count, duration_ns_or_zero, kernel, mac, optional, random_seed,
};

/// The plan of one second at rate `max` (on ports that cannot be flooded) of `streams`, to be changed and validated.
pub fn send_plan(
    path: &PathArgs,
    machine: &MachineArgs,
    probe: &ProbeArgs,
    explain: Option<&ExplainArgs>,
    mut streams: Vec<StreamPlan>,
) -> Result<SendPlan> {
    let mut ports = parse_ports(&path.ports, "--port")?;
    if ports.is_empty() {
        ports.push("ring".parse()?);
    }
    let is_process = |port: &PortUri| port.kind.traits().medium == Medium::Process;
    let is_embedded = ports.iter().all(is_process);
    kernel::refuse_from(&ports, path.from.is_some(), "--from").about("--from")?;
    kernel::send_from(&ports, &mut streams)?;
    Ok(SendPlan {
        version: VERSION,
        command: "send".into(),
        streams,
        machine: machine.device.plan(
            ports,
            path.eal.clone(),
            (machine.cores.as_deref(), probe.burst),
            &path.wait,
            explain,
        )?,
        rate: if is_embedded { "max" } else { "100kpps" }.into(),
        backlog: optional(probe.backlog.as_deref(), "--backlog", count)?,
        duration_ns: Some(1_000_000_000),
        count: None,
        quiet_ns: None,
        drain_ns: duration_ns_or_zero(&probe.drain, "--drain")?,
        seed: probe.seed.unwrap_or_else(random_seed),
        to_mac: optional(path.to_mac.as_deref(), "--to-mac", mac)?,
        from_mac: optional(path.from_mac.as_deref(), "--from-mac", mac)?,
        via: path.via,
        tx_queues: machine.tx_queues,
        rx_queues: machine.rx_queues,
        checksum_offload: machine.checksum_offload,
        verify: probe.verify,
        tx_only: false,
        fault: probe
            .fault
            .as_deref()
            .map(str::parse)
            .transpose()
            .about("--fault")?,
        expect: Vec::new(),
        interval_ns: 1_000_000_000,
    })
}

/// The streams of a command without streams of its own.
pub fn one_stream(path: &PathArgs, probe: &ProbeArgs) -> Result<Vec<StreamPlan>> {
    stream::all(stream::plain(path, probe)?, &[], path, stream::payload(None)?)
}
