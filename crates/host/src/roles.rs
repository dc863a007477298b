//! Which interfaces this machine is reached by: the default route's and the SSH sessions'.

use crate::Sys;
use crate::interface::Interface;
use itertools::Itertools as _;
use procfs_core::net::{RouteEntries, TcpNetEntries, TcpState};
use procfs_core::{ExplicitSystemInfo, FromRead, FromReadSI};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

const RTF_UP: u16 = 1;
const RTF_REJECT: u32 = 0x200;
const SSH_PORT: u16 = 22;

/// Why an interface must not be taken away from the kernel lightly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The default route leaves by it.
    DefaultRoute,
    /// An SSH session arrives by it.
    SshSession,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DefaultRoute => "the default route",
            Self::SshSession => "an SSH session",
        })
    }
}

/// The roles of every interface that has one. Interfaces below a bridge, bond or VLAN share its roles.
pub fn roles(sys: &Sys, interfaces: &[Interface]) -> BTreeMap<String, BTreeSet<Role>> {
    let mut roles: BTreeMap<String, BTreeSet<Role>> = BTreeMap::new();
    for name in default_route_interfaces(sys) {
        roles.entry(name).or_default().insert(Role::DefaultRoute);
    }
    for ip in ssh_addresses(sys) {
        let owner = sys
            .addresses
            .iter()
            .find(|(name, address)| *address == ip && name != "lo");
        if let Some((name, _)) = owner {
            roles.entry(name.clone()).or_default().insert(Role::SshSession);
        }
    }
    // Stacks are a few interfaces deep; the number of interfaces bounds them.
    for _ in interfaces {
        for interface in interfaces {
            let Some(upper) = roles.get(&interface.name).cloned() else {
                continue;
            };
            for lower in &interface.lower {
                roles.entry(lower.clone()).or_default().extend(&upper);
            }
        }
    }
    roles
}

/// The roles as words: "the default route and an SSH session".
pub fn in_words<'a>(roles: impl IntoIterator<Item = &'a Role>) -> String {
    roles.into_iter().join(" and ")
}

fn default_route_interfaces(sys: &Sys) -> BTreeSet<String> {
    let v4 = RouteEntries::from_file(sys.path("/proc/net/route"))
        .map(|table| table.0)
        .unwrap_or_default();
    let default = v4.into_iter().filter(|route| {
        route.flags & RTF_UP != 0 && route.destination.is_unspecified() && route.mask.is_unspecified()
    });
    let mut names: BTreeSet<String> = default.map(|route| route.iface).collect();
    let v6 = sys.text("/proc/net/ipv6_route").unwrap_or_default();
    names.extend(v6.lines().filter_map(default_route_v6));
    names
}

/// The interface of a line of `/proc/net/ipv6_route`, if the line is a usable `::/0`.
fn default_route_v6(line: &str) -> Option<String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [destination, length, .., flags, interface] = fields[..] else {
        return None;
    };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    let default = length == "00" && destination.bytes().all(|b| b == b'0');
    (default && flags & RTF_REJECT == 0 && interface != "lo").then(|| interface.to_owned())
}

/// Local addresses that SSH clients are connected to: this session's, and every established connection of sshd's.
fn ssh_addresses(sys: &Sys) -> BTreeSet<IpAddr> {
    let session = sys.ssh_connection.as_deref().and_then(server_of);
    let ports = [Some(SSH_PORT), session.map(|server| server.port())];
    let inodes = sshd_sockets(sys);
    let established = connections(sys).into_iter().filter(|entry| {
        let (local, state) = (entry.local_address, &entry.state);
        *state == TcpState::Established
            && (ports.contains(&Some(local.port())) || inodes.contains(&entry.inode))
    });
    let addresses = established.map(|entry| entry.local_address.ip().to_canonical());
    addresses
        .chain(session.map(|server| server.ip().to_canonical()))
        .collect()
}

/// The server's end in `SSH_CONNECTION`: "client-address client-port server-address server-port".
fn server_of(connection: &str) -> Option<SocketAddr> {
    let fields: Vec<&str> = connection.split_whitespace().collect();
    let [_, _, address, port] = fields[..] else {
        return None;
    };
    // A link-local address carries its interface behind a '%'.
    let address = address.split('%').next()?;
    Some(SocketAddr::new(address.parse().ok()?, port.parse().ok()?))
}

fn connections(sys: &Sys) -> Vec<procfs_core::net::TcpNetEntry> {
    let machine = ExplicitSystemInfo {
        boot_time_secs: 0,
        ticks_per_second: 100,
        page_size: 4096,
        is_little_endian: cfg!(target_endian = "little"),
    };
    let table = |name: &str| TcpNetEntries::from_file(sys.path(name), &machine).map(|table| table.0);
    let tables = [table("/proc/net/tcp"), table("/proc/net/tcp6")];
    tables.into_iter().flatten().flatten().collect()
}

/// Inodes of the sockets of every sshd process we may look into (as root: all), for servers on other ports than 22.
fn sshd_sockets(sys: &Sys) -> BTreeSet<u64> {
    let mut inodes = BTreeSet::new();
    for process in sys.processes().iter().map(|name| format!("/proc/{name}")) {
        let name = sys.text(format!("{process}/comm")).unwrap_or_default();
        if name != "sshd" && name != "sshd-session" {
            continue;
        }
        let directory = format!("{process}/fd");
        for descriptor in sys.names(&directory) {
            let target = sys.link_name(format!("{directory}/{descriptor}"));
            let inode = target.as_deref().and_then(|target| {
                let inode = target.strip_prefix("socket:[")?.strip_suffix(']')?;
                inode.parse::<u64>().ok()
            });
            inodes.extend(inode);
        }
    }
    inodes
}
