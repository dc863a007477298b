//! Which interfaces this machine is reached by: the default route's and the SSH sessions'.

use crate::Sys;
use crate::interface::Interface;
use itertools::Itertools as _;
use procfs_core::net::{RouteEntries, TcpNetEntries, TcpState};
use procfs_core::{ExplicitSystemInfo, FromRead, FromReadSI};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const RTF_UP: u16 = 1;
const RTF_GATEWAY: u32 = 2;
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
    for ends in ssh_ends(sys) {
        if let Some(name) = interface_of(sys, ends) {
            roles.entry(name).or_default().insert(Role::SshSession);
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

/// A usable route of the main table.
struct Route {
    to: IpAddr,
    length: u32,
    interface: String,
    has_gateway: bool,
}

impl Route {
    fn leads_to(&self, address: IpAddr) -> bool {
        match (self.to, address) {
            (IpAddr::V4(to), IpAddr::V4(address)) => {
                (to.to_bits() ^ address.to_bits()).leading_zeros() >= self.length
            }
            (IpAddr::V6(to), IpAddr::V6(address)) => {
                (to.to_bits() ^ address.to_bits()).leading_zeros() >= self.length
            }
            _ => false,
        }
    }
}

fn routes(sys: &Sys) -> Vec<Route> {
    let v4 = RouteEntries::from_file(sys.path("/proc/net/route"))
        .map(|table| table.0)
        .unwrap_or_default();
    let usable = v4.into_iter().filter(|route| route.flags & RTF_UP != 0);
    let v4 = usable.map(|route| Route {
        to: route.destination.into(),
        length: route.mask.to_bits().count_ones(),
        interface: route.iface,
        has_gateway: u32::from(route.flags) & RTF_GATEWAY != 0,
    });
    let v6 = sys.text("/proc/net/ipv6_route").unwrap_or_default();
    v4.chain(v6.lines().filter_map(route_v6)).collect()
}

/// The route in a line of `/proc/net/ipv6_route`, if it is a usable one.
fn route_v6(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [destination, length, .., flags, interface] = fields[..] else {
        return None;
    };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    (flags & RTF_REJECT == 0 && interface != "lo").then_some(())?;
    Some(Route {
        to: Ipv6Addr::from_bits(u128::from_str_radix(destination, 16).ok()?).into(),
        length: u32::from_str_radix(length, 16).ok()?,
        interface: interface.to_owned(),
        has_gateway: flags & RTF_GATEWAY != 0,
    })
}

fn default_route_interfaces(sys: &Sys) -> BTreeSet<String> {
    let default = routes(sys).into_iter().filter(|route| route.length == 0);
    default.map(|route| route.interface).collect()
}

/// By which packets leave for an address, by the main table: the narrowest.
fn route_towards(sys: &Sys, address: IpAddr) -> Option<Route> {
    let fitting = routes(sys).into_iter().filter(|route| route.leads_to(address));
    fitting.max_by_key(|route| route.length)
}

/// The interface by which packets leave for an address.
pub fn interface_towards(sys: &Sys, address: IpAddr) -> Option<String> {
    route_towards(sys, address).map(|route| route.interface)
}

/// Whether an address is on a link of ours: no gateway is between.
pub fn is_on_link(sys: &Sys, address: IpAddr) -> bool {
    route_towards(sys, address).is_some_and(|route| !route.has_gateway)
}

/// The interface that a connection comes in by: that which has our address, or, where that is nobody's in particular (of the
/// loopback, say), by which we answer.
pub fn interface_of(sys: &Sys, (ours, theirs): (IpAddr, IpAddr)) -> Option<String> {
    let owner = sys
        .addresses
        .iter()
        .find(|(name, address)| *address == ours && name != "lo");
    owner
        .map(|(name, _)| name.clone())
        .or_else(|| interface_towards(sys, theirs).filter(|name| name != "lo"))
}

/// Our address and the client's of this SSH session, and of every established connection of sshd's.
fn ssh_ends(sys: &Sys) -> BTreeSet<(IpAddr, IpAddr)> {
    let session = sys.ssh_connection.as_deref().and_then(ends_of);
    let ports = [Some(SSH_PORT), session.map(|(_, server)| server.port())];
    let inodes = sshd_sockets(sys);
    let established = connections(sys).into_iter().filter(|entry| {
        let (local, state) = (entry.local_address, &entry.state);
        *state == TcpState::Established
            && (ports.contains(&Some(local.port())) || inodes.contains(&entry.inode))
    });
    let ends = established.map(|entry| (entry.remote_address.ip(), entry.local_address.ip()));
    ends.chain(session.map(|(client, server)| (client.ip(), server.ip())))
        .map(|(client, server)| (server.to_canonical(), client.to_canonical()))
        .collect()
}

/// The client's end and the server's in `SSH_CONNECTION`: "client-address client-port server-address server-port".
pub fn ends_of(connection: &str) -> Option<(SocketAddr, SocketAddr)> {
    let fields: Vec<&str> = connection.split_whitespace().collect();
    let [client, client_port, server, server_port] = fields[..] else {
        return None;
    };
    // A link-local address carries its interface behind a '%'.
    let address = |text: &str| text.split('%').next()?.parse::<IpAddr>().ok();
    let end = |host, port: &str| Some(SocketAddr::new(address(host)?.to_canonical(), port.parse().ok()?));
    Some((end(client, client_port)?, end(server, server_port)?))
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
