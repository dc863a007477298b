//! Prints a port URI so that parsing it again gives the same port.

use super::{KernelIo, PortKind, PortUri, UriError, XdpMode};
use std::fmt::{self, Display};
use std::path::Path;

impl Display for PortUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.traits().name)?;
        write_kind(f, &self.kind)?;
        option(f, "queues", self.queues.as_ref())
    }
}

fn write_kind(f: &mut fmt::Formatter<'_>, kind: &PortKind) -> fmt::Result {
    match kind {
        PortKind::Ring { name, direct, size } => {
            name.as_ref().map_or(Ok(()), |name| write!(f, ":{name}"))?;
            flag(f, "direct", *direct)?;
            option(f, "size", size.as_ref())
        }
        PortKind::Null { name, size } => {
            name.as_ref().map_or(Ok(()), |name| write!(f, ":{name}"))?;
            option(f, "size", size.as_ref())
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
            option(f, "start", start.as_ref())?;
            match mode {
                XdpMode::Auto => Ok(()),
                XdpMode::Copy => f.write_str(",mode=copy"),
                XdpMode::ZeroCopy => f.write_str(",mode=zero-copy"),
            }
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
            option(f, "mac", mac.as_ref())
        }
        PortKind::Memif { .. } | PortKind::Vhost { .. } | PortKind::VirtioUser { .. } => {
            write_socket(f, kind)
        }
        PortKind::Pcap { input, output } => {
            write!(f, ":{}", file(input.as_deref()))?;
            if output.is_some() {
                write!(f, ",{}", file(output.as_deref()))
            } else {
                Ok(())
            }
        }
        PortKind::Kernel { address, port, io } => {
            match port {
                Some(port) => write!(f, ":{}", std::net::SocketAddr::new(*address, *port))?,
                None => write!(f, ":{address}")?,
            }
            option(
                f,
                "io",
                Some(io.name()).filter(|_| *io != KernelIo::Call).as_ref(),
            )
        }
        PortKind::Vdev { arguments } => write!(f, ":{arguments}"),
    }
}

fn write_socket(f: &mut fmt::Formatter<'_>, kind: &PortKind) -> fmt::Result {
    match kind {
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
            option(f, "size", size_log2.as_ref())
        }
        PortKind::Vhost { path, client } => {
            write!(f, ":{}", path.display())?;
            flag(f, "client", *client)
        }
        PortKind::VirtioUser { path, server } => {
            write!(f, ":{}", path.display())?;
            flag(f, "server", *server)
        }
        _ => Ok(()),
    }
}

fn flag(f: &mut fmt::Formatter<'_>, name: &str, set: bool) -> fmt::Result {
    if set { write!(f, ",{name}") } else { Ok(()) }
}

fn option<T: Display>(f: &mut fmt::Formatter<'_>, name: &str, value: Option<&T>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, ",{name}={value}"))
}

fn file(path: Option<&Path>) -> String {
    path.map_or_else(|| "-".to_owned(), |path| path.display().to_string())
}

impl From<PortUri> for String {
    fn from(uri: PortUri) -> Self {
        uri.to_string()
    }
}

impl TryFrom<String> for PortUri {
    type Error = UriError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
