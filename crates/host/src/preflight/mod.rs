//! Checks that everything a port needs is there, before EAL starts and says it in its own way. One file per kind.

mod bifurcated;
mod clash;
mod device;
mod interface;
mod kernel;
mod look;
mod mac;
mod namespace;
mod pcap;
mod pci;
mod socket;
mod tap;
mod vdev;
mod vmbus;

pub use device::device;
pub use look::{Memory, Prepared};
pub use namespace::check_sys;
pub use pcap::is_same_file;

use crate::{Fix, PciAddress, PortKind, PortUri, Problem, Sys};
use look::Look;

/// Checks of a port of which only the kind is known that its driver is installed.
pub(crate) fn check_driver(uri: &PortUri, sys: &Sys) -> Result<Prepared, Problem> {
    let installed = Look::new(uri, sys).own_driver();
    installed.map(|()| Prepared::of(uri))
}

/// Checks one port, and changes nothing: what is in the way of a server stands in [`Prepared::abandoned`].
pub fn check(uri: &PortUri, sys: &Sys) -> Result<Prepared, Problem> {
    let look = Look::new(uri, sys);
    match &uri.kind {
        PortKind::Ring { .. } => Ok(Prepared::of(uri)),
        PortKind::Null { .. } => check_driver(uri, sys),
        PortKind::Pci { address } => pci::check(&look, *address),
        PortKind::Vmbus { id } => vmbus::check(&look, id),
        PortKind::Mac { address } => {
            let device = mac::device(&look, *address)?;
            check(&device, sys).map_err(|problem| Problem {
                what: format!("{uri} ({})", problem.what),
                ..problem
            })
        }
        PortKind::Xdp { interface, start, .. } => interface::xdp(&look, interface, *start),
        PortKind::Packet { interface, .. } => interface::packet(&look, interface),
        PortKind::Tap { name, .. } => tap::check(&look, name),
        PortKind::Memif {
            path,
            server,
            zero_copy,
            ..
        } => socket::memif(&look, path, *server, *zero_copy),
        PortKind::Vhost { path, client } => socket::vhost(&look, path, *client),
        PortKind::VirtioUser { path, server } => socket::virtio_user(&look, path, *server),
        PortKind::Pcap { input, output } => pcap::check(&look, input.as_deref(), output.as_deref()),
        PortKind::Kernel { address, port, .. } => kernel::check(&look, *address, *port),
        PortKind::Vdev { arguments } => vdev::check(&look, arguments),
    }
}

/// The PCI function of a port and the driver that it is to be bound to; nothing where it is right as it is.
pub fn takeover(uri: &PortUri, sys: &Sys) -> Result<Option<(PciAddress, &'static str)>, Problem> {
    let PortKind::Pci { address } = uri.kind else {
        return Ok(None);
    };
    let driver = pci::takeover(&Look::new(uri, sys), address)?;
    Ok(driver.map(|driver| (address, driver)))
}

/// Checks all ports of a run: that there is one, each alone, and that no two take the same thing.
pub fn check_all(uris: &[PortUri], sys: &Sys) -> Result<Vec<Prepared>, Problem> {
    if uris.is_empty() {
        let fix = Fix::advice("name one, for example ring, or see: dropless ports");
        return Err(Problem::new("ports", "no port was given", fix));
    }
    clash::check(uris)?;
    pcap::check_shared(uris, sys)?;
    let prepared = uris
        .iter()
        .map(|uri| check(uri, sys))
        .collect::<Result<Vec<_>, _>>()?;
    // A mac: may turn out to be a device that is also named directly.
    let resolved: Vec<PortUri> = prepared.iter().map(|port| port.uri.clone()).collect();
    clash::check(&resolved)?;
    Ok(prepared)
}
