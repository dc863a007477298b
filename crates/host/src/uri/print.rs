//! Prints a port URI so that parsing it again gives the same port.

use super::{KernelIo, PortKind, PortUri, XdpMode};
use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::path::Path;

impl Display for PortUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.traits().name)?;
        write_kind(f, &self.kind)?;
        option(f, "queues", self.queues)
    }
}

fn write_kind(f: &mut fmt::Formatter<'_>, kind: &PortKind) -> fmt::Result {
    match kind {
        PortKind::Ring { name, direct, size } => {
            name.as_ref().map_or(Ok(()), |name| write!(f, ":{name}"))?;
            flag(f, "direct", *direct)?;
            option(f, "size", *size)
        }
        PortKind::Null { name, size } => {
            name.as_ref().map_or(Ok(()), |name| write!(f, ":{name}"))?;
            option(f, "size", *size)
        }
        PortKind::Pci { address } => write!(f, ":{address}"),
        PortKind::Vmbus { id } => write!(f, ":{id}"),
        PortKind::Mac { address } => write!(f, ":{address}"),
        PortKind::Xdp {
            interface,
            start,
            mode,
        } => {
            write!(f, ":{interface}")?;
            option(f, "start", *start)?;
            option(f, "mode", (*mode != XdpMode::Auto).then(|| mode.name()))
        }
        PortKind::Packet {
            interface,
            qdisc_bypass,
        } => {
            write!(f, ":{interface}")?;
            flag(f, "qdisc-bypass", *qdisc_bypass)
        }
        PortKind::Tap { name, mac } => {
            write!(f, ":{name}")?;
            option(f, "mac", *mac)
        }
        PortKind::Memif {
            path,
            server,
            id,
            zero_copy,
            size_log2,
        } => {
            write!(f, ":{}", path.display())?;
            flag(f, "server", *server)?;
            option(f, "id", Some(id).filter(|id| **id != 0))?;
            flag(f, "zero-copy", *zero_copy)?;
            option(f, "size", *size_log2)
        }
        PortKind::Vhost { path, client } => {
            write!(f, ":{}", path.display())?;
            flag(f, "client", *client)
        }
        PortKind::VirtioUser { path, server } => {
            write!(f, ":{}", path.display())?;
            flag(f, "server", *server)
        }
        PortKind::Pcap { input, output } => {
            let input = input.as_deref().unwrap_or(Path::new("-"));
            write!(f, ":{}", input.display())?;
            let output = output.as_ref();
            output.map_or(Ok(()), |output| write!(f, ",{}", output.display()))
        }
        PortKind::Kernel { address, port, io } => {
            match port {
                Some(port) => write!(f, ":{}", SocketAddr::new(*address, *port))?,
                None => write!(f, ":{address}")?,
            }
            option(f, "io", (*io != KernelIo::Call).then(|| io.name()))
        }
        PortKind::Vdev { arguments } => write!(f, ":{arguments}"),
    }
}

fn flag(f: &mut fmt::Formatter<'_>, name: &str, set: bool) -> fmt::Result {
    if set { write!(f, ",{name}") } else { Ok(()) }
}

fn option(f: &mut fmt::Formatter<'_>, name: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, ",{name}={value}"))
}

crate::as_text::as_text!(PortUri);
