//! Which interfaces this machine is reached by.

use crate::fixture::Fixture;
use host::{Carrier, Role, discover};
use std::collections::BTreeSet;

const TCP_HEAD: &str =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

fn machine() -> Fixture {
    let mut machine = Fixture::new();
    machine.interface("eth0", None);
    machine.interface("eth1", None);
    machine.sys.addresses = vec![
        ("lo".into(), "127.0.0.1".parse().unwrap()),
        ("eth0".into(), "192.0.2.2".parse().unwrap()),
        ("eth1".into(), "198.51.100.2".parse().unwrap()),
        ("eth1".into(), "2001:db8::2".parse().unwrap()),
    ];
    machine
}

fn roles(machine: &Fixture, name: &str) -> BTreeSet<Role> {
    discover(&machine.sys)
        .into_iter()
        .find(|carrier: &Carrier| carrier.name == name)
        .unwrap()
        .roles
}

fn tcp(local: &str, state: &str, inode: u32) -> String {
    format!(
        "{TCP_HEAD}   0: {local} 0A0200C0:D431 {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0 20 4 30 10 -1\n"
    )
}

#[test]
fn default_routes_of_both_families() {
    let machine = machine();
    machine.default_route("eth0");
    let zero = "0".repeat(32);
    let route = |interface: &str, flags: &str| {
        format!(
            "{zero} 00 {zero} 00 fd000000000000000000000000000001 00000400 00000001 00000000 {flags} {interface}\n"
        )
    };
    machine.write(
        "/proc/net/ipv6_route",
        &(route("lo", "00200200") + &route("eth1", "00000003")),
    );
    assert_eq!(roles(&machine, "eth0"), [Role::DefaultRoute].into());
    assert_eq!(roles(&machine, "eth1"), [Role::DefaultRoute].into());
    // A rejecting route leads nowhere; a route to a network is no default.
    machine.write(
        "/proc/net/ipv6_route",
        &(route("eth1", "00200200") + &route("eth1", "00000003").replacen(" 00 ", " 40 ", 1)),
    );
    assert_eq!(roles(&machine, "eth1"), [].into());
}

/// A gateway is between us and whoever is not on the link.
#[test]
fn a_route_tells_who_is_on_the_link() {
    let machine = machine();
    let zero = "0".repeat(32);
    let route = |to: &str, length: &str, flags: &str| {
        format!("{to} {length} {zero} 00 {zero} 00000400 00000001 00000000 {flags} eth1\n")
    };
    let is_near = |address: &str| host::roles::is_on_link(&machine.sys, address.parse().unwrap());
    assert!(!is_near("2001:db8::7"), "nobody knows the way");
    machine.write(
        "/proc/net/ipv6_route",
        &(route("20010db8000000000000000000000000", "40", "00000001") + &route(&zero, "00", "00000003")),
    );
    assert!(is_near("2001:db8::7") && !is_near("2001:db8:1::7"));
}

#[test]
fn this_session_by_its_environment() {
    let mut machine = machine();
    machine.sys.ssh_connection = Some("203.0.113.9 51234 198.51.100.2 2222".into());
    assert_eq!(roles(&machine, "eth1"), [Role::SshSession].into());
    assert_eq!(roles(&machine, "eth0"), [].into());
}

/// Where our address is the loopback's, packets come in where answers leave, as far as anybody knows.
#[test]
fn a_session_to_an_address_of_no_interface_by_the_narrowest_route() {
    let mut machine = machine();
    machine
        .sys
        .addresses
        .push(("lo".into(), "10.99.0.1".parse().unwrap()));
    machine.sys.ssh_connection = Some("203.0.113.9 51234 10.99.0.1 22".into());
    assert_eq!(roles(&machine, "eth1"), [].into());
    let head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
    let route = |interface: &str, to: &str, mask: &str| {
        format!("{interface}\t{to}\t00000000\t0001\t0\t0\t0\t{mask}\t0\t0\t0\n")
    };
    // 203.0.0.0/8 and 203.0.113.0/24, as the kernel writes them.
    let both = route("eth0", "000000CB", "000000FF") + &route("eth1", "007100CB", "00FFFFFF");
    machine.write("/proc/net/route", &format!("{head}{both}"));
    assert_eq!(roles(&machine, "eth1"), [Role::SshSession].into());
    assert_eq!(roles(&machine, "eth0"), [].into());
}

#[test]
fn any_session_by_the_connections_of_port_22() {
    let machine = machine();
    // 192.0.2.2:22 established; the same listening says nothing.
    machine.write("/proc/net/tcp", &tcp("020200C0:0016", "0A", 0));
    assert_eq!(roles(&machine, "eth0"), [].into());
    machine.write("/proc/net/tcp", &tcp("020200C0:0016", "01", 5));
    assert_eq!(roles(&machine, "eth0"), [Role::SshSession].into());
}

#[test]
fn ipv4_sessions_of_a_dual_stack_server_and_ipv6_ones() {
    let machine = machine();
    machine.write(
        "/proc/net/tcp6",
        &tcp("0000000000000000FFFF0000026433C6:0016", "01", 5),
    );
    assert_eq!(roles(&machine, "eth1"), [Role::SshSession].into());
    machine.write(
        "/proc/net/tcp6",
        &tcp("B80D0120000000000000000002000000:0016", "01", 5),
    );
    assert_eq!(roles(&machine, "eth1"), [Role::SshSession].into());
}

#[test]
fn sessions_on_another_port_by_the_sockets_of_sshd() {
    let machine = machine();
    machine.write("/proc/net/tcp", &tcp("020200C0:08AE", "01", 4242));
    assert_eq!(roles(&machine, "eth0"), [].into());
    machine.write("/proc/99/comm", "sshd-session\n");
    machine.dangling_link("/proc/99/fd/3", "socket:[4242]");
    assert_eq!(roles(&machine, "eth0"), [Role::SshSession].into());
}

#[test]
fn what_lies_below_a_bond_and_a_bridge_shares_their_role() {
    let machine = machine();
    for name in ["br0", "bond0"] {
        machine.interface(name, None);
    }
    machine.link(
        "/sys/devices/virtual/net/br0/lower_bond0",
        "/sys/devices/virtual/net/bond0",
    );
    machine.link(
        "/sys/devices/virtual/net/bond0/lower_eth1",
        "/sys/devices/virtual/net/eth1",
    );
    machine.default_route("br0");
    assert_eq!(roles(&machine, "eth1"), [Role::DefaultRoute].into());
    assert_eq!(roles(&machine, "eth0"), [].into());
}
