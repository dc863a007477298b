//! What this machine lacks for a way, and what would mend that.

use std::sync::Arc;

use host::{PortKind, PortUri, Role, Sys};
use measure::comparison::Method;
use sockets::{Options, Receiver, Socket, Way as SocketWay};

/// What stands in the way of a device or interface that the user named. Other kinds come to be when they are opened.
pub fn absent(uri: &str, sys: &Sys) -> Option<String> {
    let uri: PortUri = uri.parse().ok()?;
    match uri.kind {
        PortKind::Pci { .. }
        | PortKind::Vmbus { .. }
        | PortKind::Mac { .. }
        | PortKind::Xdp { .. }
        | PortKind::Packet { .. } => host::check(&uri, sys).err().map(|problem| problem.to_string()),
        _ => None,
    }
}

/// Why AF_XDP, which takes packets away from the kernel, is not tried on an interface that nobody named: this machine is
/// reached by it.
pub fn carries(interface: &str, sys: &Sys) -> Option<String> {
    let roles = host::roles::roles(sys, &host::interface::interfaces(sys)).remove(interface)?;
    let carried = host::roles::in_words(&roles);
    // An SSH session's is refused, whoever names it.
    let name_it = if roles.contains(&Role::SshSession) {
        String::new()
    } else {
        format!("--near-port xdp:{interface}, or ")
    };
    Some(format!(
        "{interface} carries {carried} of this machine; fix: {name_it}reach the other one by another interface"
    ))
}

/// What the machine lacks for this way, whose near end is `uri`.
pub fn lacks(method: Method, uri: &str, sys: &Sys) -> Option<String> {
    if method == Method::KernelUring {
        return no_io_uring();
    }
    let uri: PortUri = uri.parse().ok()?;
    let driver = uri.kind.traits().driver?;
    let drivers = host::drivers(sys);
    (drivers.has(driver) == Some(false)).then(|| {
        format!(
            "DPDK's driver net_{driver} is not installed; fix: apt-get install {}",
            drivers.package(driver)
        )
    })
}

fn no_io_uring() -> Option<String> {
    let options = Options {
        local: ([127, 0, 0, 1], 0).into(),
        shared_port: false,
        buffer_bytes: 1 << 16,
        dscp: 0,
        ttl: 64,
    };
    let tried = Socket::open(&options)
        .and_then(|socket| Receiver::new(Arc::new(socket), SocketWay::Ring, 1, 2048).map(drop));
    tried.err().map(|error| {
        format!("io_uring does not work here ({error}): it needs Linux 6.0 and /proc/sys/kernel/io_uring_disabled at 0")
    })
}

/// Why there can be no virtual wire.
pub fn no_namespaces() -> Option<String> {
    if !has_tool("ip") {
        return Some("needs ip(8) to make a virtual wire; fix: apt-get install iproute2".into());
    }
    (!nix::unistd::geteuid().is_root()).then(|| {
        "needs root to make network namespaces; fix: run it with sudo, or name another machine with --far"
            .into()
    })
}

/// Whether a program is installed.
pub fn has_tool(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(std::path::PathBuf::from);
    std::env::split_paths(&path)
        .chain(usual)
        .any(|directory| directory.join(name).is_file())
}
