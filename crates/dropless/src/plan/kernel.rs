//! What plans of `kernel:` ports mean: the kernel makes the headers there, so that some wishes cannot be met.

use std::net::SocketAddr;

use anyhow::{Result, bail, ensure};
use host::{Medium, PortKind, PortUri};
use wire::Verify;

use super::{ReflectPlan, SendPlan, StreamPlan, VerifyPlan};
use crate::about::{bail_about, ensure_about};
use crate::run::kernel_port::SocketConfig;

/// UDP echo: where `dropless send` sends to unless told otherwise.
const ECHO_PORT: u16 = 7;
/// Stands for a port that the kernel will choose.
const ANY_PORT: u16 = 49152;

/// A reflector is found at the echo port, unless its URI says otherwise.
pub fn serve(ports: &mut [PortUri]) {
    for uri in ports {
        if let PortKind::Kernel { port, .. } = &mut uri.kind {
            port.get_or_insert(ECHO_PORT);
        }
    }
}

fn first(ports: &[PortUri]) -> Option<&PortUri> {
    ports.iter().find(|port| is_sockets(port))
}

fn is_sockets(port: &PortUri) -> bool {
    port.kind.traits().medium == Medium::Sockets
}

/// Refuses an address to send from that was given by `what`: there is that of the socket.
pub fn refuse_from(ports: &[PortUri], is_given: bool, what: &str) -> Result<()> {
    match first(ports).filter(|_| is_given) {
        Some(uri) => bail!(
            "port {uri} sends from its own address; leave {what} out, or write the address and port there: kernel:ADDR:PORT"
        ),
        None => Ok(()),
    }
}

/// Refuses addresses to answer for: behind a socket the kernel answers for its own.
pub fn refuse_addresses(ports: &[PortUri], are_given: bool) -> Result<()> {
    if let Some(uri) = ports
        .first()
        .filter(|_| are_given && ports.iter().all(is_sockets))
    {
        bail_about!(
            "--address",
            "port {uri} answers for the address in its name, and the kernel answers ARP, NDP and echo; leave --address out, or write it there: kernel:ADDR:PORT"
        );
    }
    Ok(())
}

/// Streams through sockets come from where the socket is bound.
pub fn send_from(ports: &[PortUri], streams: &mut [StreamPlan]) -> Result<()> {
    let Some(uri) = first(ports) else { return Ok(()) };
    let PortKind::Kernel { address, port, .. } = uri.kind else {
        return Ok(());
    };
    ensure_about!(
        "--port",
        ports.iter().all(is_sockets),
        "port {uri} does not go with ports of other kinds in one run; give each its own run"
    );
    for stream in streams {
        stream.from = SocketAddr::new(address, port.unwrap_or(ANY_PORT));
    }
    Ok(())
}

/// Refuses what a socket cannot do.
pub fn check_send(plan: &SendPlan) -> Result<()> {
    let Some(uri) = first(&plan.machine.ports) else {
        return Ok(());
    };
    let instead = "use packet:IF or xdp:IF, which send whole frames";
    ensure!(
        plan.to_mac.is_none() && plan.from_mac.is_none() && plan.via.is_none(),
        "port {uri} leaves MAC addresses and routes to the kernel; leave --to-mac, --from-mac and --via out, or {instead}"
    );
    ensure_about!(
        "--checksum-offload",
        !plan.checksum_offload,
        "port {uri} leaves checksums to the kernel; leave --checksum-offload out, or {instead}"
    );
    let Some(leader) = plan.streams.first() else {
        return Ok(());
    };
    for stream in &plan.streams {
        ensure!(
            stream.vlans.is_empty(),
            "port {uri} sends no VLAN tags: the kernel's interface does; give the address of a VLAN interface, or {instead}"
        );
        ensure!(
            stream.flows == 1,
            "port {uri} is one UDP port a queue, and so one flow; use --tx-queues {} --rx-queues {0} for as many, or {instead}",
            stream.flows.min(64)
        );
        ensure!(
            stream.ttl > 0,
            "port {uri} sends no TTL of 0, which the kernel takes from nobody; give a ttl of 1 or more, or {instead}"
        );
        ensure!(
            (stream.dscp, stream.ttl) == (leader.dscp, leader.ttl),
            "streams `{}` and `{}` differ in dscp or ttl, which a socket has one of; give them the same, or {instead}",
            leader.name,
            stream.name
        );
    }
    Ok(())
}

/// The same for a reflector.
pub fn check_reflect(plan: &ReflectPlan) -> Result<()> {
    let damages = plan.fault.as_ref().is_some_and(|fault| fault.corrupt > 0.0);
    if let (Some(uri), true) = (first(&plan.machine.ports), damages) {
        bail_about!(
            "--fault",
            "--fault corrupt on port {uri}: the kernel gives every packet a valid checksum, so that the damage would not be detected; use packet:IF or xdp:IF"
        );
    }
    Ok(())
}

impl SendPlan {
    /// What is left to check of a frame whose checksums the kernel has verified and taken off. A payload that is to be
    /// compared is compared, under a checksum made of it.
    pub fn verify_behind_sockets(&self) -> Verify {
        match self.verify {
            VerifyPlan::Payload => Verify::Payload,
            VerifyPlan::None | VerifyPlan::Checksum => Verify::None,
        }
    }

    /// What the run wants of its sockets.
    pub fn sockets(&self) -> Result<SocketConfig> {
        let of_all = |stream: &StreamPlan| (stream.dscp, stream.ttl);
        Ok(SocketConfig {
            queues: self.tx_queues.max(self.rx_queues),
            descriptors: self.machine.descriptors,
            burst: self.machine.burst,
            largest_frame: self.largest_frame()?,
            sealed: self.verify == VerifyPlan::Payload,
            reflects: false,
            has_faults: false,
            dscp_and_ttl: self.streams.first().map_or((0, 64), of_all),
            peers: self
                .streams
                .iter()
                .map(|stream| SocketAddr::new(stream.to, stream.to_ports.0))
                .collect(),
        })
    }
}

impl ReflectPlan {
    /// What the run wants of its sockets.
    pub fn sockets(&self) -> SocketConfig {
        SocketConfig {
            queues: self.queues,
            descriptors: self.machine.descriptors,
            burst: self.machine.burst,
            largest_frame: measure::FRAME_SIZE_MAX,
            sealed: false,
            reflects: true,
            has_faults: self.fault.is_some(),
            dscp_and_ttl: (0, 64),
            peers: Vec::new(),
        }
    }
}
