//! The kernel as peer over a virtual wire: it pings `reflect`, echoes `send`, asks for us, refuses us, goes away.

use std::time::Duration;

use crate::support::wire::{
    FAR_V4, FAR_V6, Wire, assert_conserved, assert_invalid, assert_refused, assert_valid_but_for_time,
    has_note, interrupted,
};
use crate::support::{Need, Running, VlanInterface, require, until};

const NEEDS: [Need; 3] = [Need::Namespaces, Need::Tool("ethtool"), Need::Tool("ping")];
const ECHO: [Need; 3] = [Need::Namespaces, Need::Tool("ethtool"), Need::Tool("socat")];
const OURS: &str = "--address=198.18.0.9,2001:2::9";
const SOON: Duration = Duration::from_secs(10);
/// So long it goes on sending without its peer: as long as a ring needs to fill, and many looks at the link.
const GONE: Duration = Duration::from_millis(700);

/// The kernel finds our address by ARP or NDP and gets every echo back.
fn ping_is_answered(kind: &str) {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::to_kernel(&lab);
    let reflector = wire.reflect_near(&lab, kind, &[OURS]);
    wire.far
        .run("ping", &["-c", "3", "-i", "0.02", "-W", "5", "198.18.0.9"]);
    wire.far
        .run("ping", &["-6", "-c", "3", "-i", "0.02", "-W", "5", "2001:2::9"]);
    let neighbours = wire.far.ip(&["neighbour", "show"]);
    let mac = wire.near.mac("near0");
    for address in ["198.18.0.9", "2001:2::9"] {
        let known = neighbours
            .lines()
            .any(|line| line.starts_with(address) && line.contains(&mac));
        assert!(known, "the kernel does not know {address} as {mac}: {neighbours}");
    }
    let run = interrupted(reflector);
    assert_eq!(run.code, Some(0), "{run}");
    // Six echoes, one ARP, one NDP at least; what else the kernel says is dropped and counted.
    assert!(run.number("answered") >= 8, "{run}");
    assert_eq!(run.number("returned"), run.number("answered"), "{run}");
    assert_eq!(run.number("pool.leaked"), 0, "{run}");
}

#[test]
fn ping_is_answered_over_af_xdp() {
    ping_is_answered("xdp");
}

#[test]
fn ping_is_answered_over_af_packet() {
    ping_is_answered("packet");
}

/// The same from a VLAN interface: requests and answers carry its tag.
fn ping_is_answered_in_a_vlan(kind: &str) {
    let tools = [
        Need::Tool("ethtool"),
        Need::Tool("ping"),
        Need::Tool("tcpdump"),
        Need::Tool("tshark"),
    ];
    let Some(lab) = require(&[&[Need::Namespaces][..], &tools].concat()) else {
        return;
    };
    let wire = Wire::to_kernel(&lab);
    // The tag goes into the frame, not beside it: what is beside a frame is lost on the way to an XDP program.
    wire.far.run("ethtool", &["-K", "far0", "txvlan", "off"]);
    let _vlan = VlanInterface::new(&wire.far, "far0", "far0.5", 5);
    wire.far.up("far0.5", &["10.55.0.1/24", "fd55::1/64"]);
    let reflector = wire.reflect_near(&lab, kind, &["--address=10.55.0.9,fd55::9"]);
    let file = lab.path("vlan.pcap").display().to_string();
    let ours = ["ether", "src", &wire.near.mac("near0")];
    let tcpdump = ["-i", "far0", "--immediate-mode", "-U", "-w", &file];
    let mut capture = wire.far.spawn("tcpdump", &[&tcpdump[..], &ours].concat());
    capture.wait_for("listening on", SOON);
    wire.far
        .run("ping", &["-c", "3", "-i", "0.02", "-W", "5", "10.55.0.9"]);
    wire.far
        .run("ping", &["-6", "-c", "3", "-i", "0.02", "-W", "5", "fd55::9"]);
    let run = interrupted(reflector);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.number("answered") >= 8, "{run}");
    let _ = interrupted(capture);
    let tags = wire
        .far
        .run("tshark", &["-n", "-r", &file, "-T", "fields", "-e", "vlan.id"]);
    assert!(
        tags.lines().count() >= 8 && tags.lines().all(|tag| tag == "5"),
        "the tags of our answers: {tags}"
    );
}

#[test]
fn ping_is_answered_in_a_vlan_over_af_xdp() {
    ping_is_answered_in_a_vlan("xdp");
}

#[test]
fn ping_is_answered_in_a_vlan_over_af_packet() {
    ping_is_answered_in_a_vlan("packet");
}

/// Probes that fit into the server's socket all together, whoever stands still; and none is given up or too late.
fn fitting(rate: &str) -> Vec<&str> {
    vec![
        "--rate",
        rate,
        "--count",
        "250",
        "--backlog",
        "1M",
        "--drain",
        "5s",
    ]
}

/// A kernel UDP server returns every probe; its MAC address was found by ARP or NDP.
fn every_probe_is_echoed(kind: &str, to: &str) {
    let Some(lab) = require(&ECHO) else { return };
    let wire = Wire::to_kernel(&lab);
    let _server = wire.echo_server(to == FAR_V6);
    let run = wire
        .send(&lab, kind, &[&["--to", to], &fitting("500pps")[..]].concat())
        .run();
    assert_valid_but_for_time(&run);
    assert_conserved(&run);
    assert_eq!((run.number("sent"), run.number("received")), (250, 250), "{run}");
    assert_eq!((run.number("duplicate"), run.number("corrupt")), (0, 0), "{run}");
}

#[test]
fn every_probe_is_echoed_over_af_xdp() {
    every_probe_is_echoed("xdp", FAR_V4);
}

#[test]
fn every_probe_is_echoed_over_af_xdp_by_ipv6() {
    every_probe_is_echoed("xdp", FAR_V6);
}

#[test]
fn every_probe_is_echoed_over_af_packet() {
    every_probe_is_echoed("packet", FAR_V4);
}

#[test]
fn every_probe_is_echoed_over_af_packet_by_ipv6() {
    every_probe_is_echoed("packet", FAR_V6);
}

/// Waits until the far kernel has sent the run some of its probes back.
fn wait_for_traffic(wire: &Wire, run: &mut Running) {
    run.wait_for("sending", SOON);
    let moving = until(SOON, || {
        let shown = wire.far.ip(&["-s", "-o", "link", "show", "far0"]);
        let sent = shown.split("TX:").nth(1).and_then(|rest| rest.split('\\').nth(1));
        let packets = sent.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        packets.is_some_and(|packets| packets > 30)
    });
    assert!(moving, "no traffic: {run:?}");
}

/// The kernel forgets us in the middle and asks again: it is answered, and nothing is lost.
fn a_kernel_that_asks_for_us_is_answered(kind: &str, to: &str, protocol: &str) {
    let Some(lab) = require(&ECHO) else { return };
    let wire = Wire::to_kernel(&lab);
    let _server = wire.echo_server(to == FAR_V6);
    let mut running = wire
        .send(&lab, kind, &[&["--to", to], &fitting("100pps")[..]].concat())
        .spawn();
    wait_for_traffic(&wire, &mut running);
    wire.far.ip(&["neighbour", "flush", "dev", "far0"]);
    // Its answers to what comes next go nowhere before it has asked.
    let mac = wire.near.mac("near0");
    let knows_us = || wire.far.ip(&["neighbour", "show", "dev", "far0"]).contains(&mac);
    assert!(until(SOON, knows_us), "{running:?}");
    let run = interrupted(running);
    assert_valid_but_for_time(&run);
    assert_conserved(&run);
    assert!(
        run.number(&format!("ledger.arrived.foreign.{protocol}")) >= 1,
        "{run}"
    );
    assert!(run.number("ledger.arrived.answered") >= 1, "{run}");
    assert_eq!(run.number("received"), run.number("sent"), "{run}");
}

#[test]
fn a_kernel_that_asks_for_us_by_arp_is_answered() {
    a_kernel_that_asks_for_us_is_answered("packet", FAR_V4, "arp");
}

#[test]
fn a_kernel_that_asks_for_us_by_ndp_is_answered() {
    a_kernel_that_asks_for_us_is_answered("xdp", FAR_V6, "ndp");
}

/// Nobody listens: the kernel's ICMP errors, which carry our own probes, are counted as such and as nothing else.
fn port_unreachable_is_no_answer(kind: &str, to: &str) {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::to_kernel(&lab);
    let arguments = [
        "--to", to, "--rate", "100pps", "--count", "50", "--drain", "300ms",
    ];
    let run = wire.send(&lab, kind, &arguments).run();
    assert_invalid(&run, "nothing was received");
    assert_conserved(&run);
    assert!(run.number("ledger.arrived.foreign.icmp_error_ours") >= 1, "{run}");
    assert_eq!((run.number("sent"), run.number("lost")), (50, 50), "{run}");
    assert!(has_note(&run.json(), "packets_refused"), "{run}");
}

#[test]
fn port_unreachable_is_no_answer_over_af_xdp() {
    port_unreachable_is_no_answer("xdp", FAR_V4);
}

#[test]
fn port_unreachable_is_no_answer_over_af_packet_by_ipv6() {
    port_unreachable_is_no_answer("packet", FAR_V6);
}

#[test]
fn an_address_nobody_has_is_one_line() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::to_kernel(&lab);
    // All wait at once, and each for its own answer.
    let quiet = ["send", "--quiet", "--port", "packet:near0", "--to", "198.18.0.78"];
    let quiet = lab.dropless(&quiet).within(&wire.near).spawn();
    let asking = [("198.18.0.77", "ARP"), ("2001:2::77", "NDP")]
        .map(|(to, protocol)| (to, protocol, wire.send(&lab, "packet", &["--to", to]).spawn()));
    for (to, protocol, run) in asking {
        let run = run.wait(Duration::from_secs(60));
        assert_refused(&run, &["nobody answered", protocol, to, "--to-mac"]);
    }
    let quiet = quiet.wait(Duration::from_secs(60));
    let words = [
        "nobody answered ARP for 198.18.0.78",
        "give --via for a router, or --to-mac",
    ];
    assert_refused(&quiet, &words);
    assert_eq!(quiet.stdout, "", "{quiet}");
    assert!(quiet.stderr.starts_with("dropless: "), "{quiet}");
}

#[test]
fn an_interface_that_is_down_is_one_line() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::to_kernel(&lab);
    wire.near.ip(&["link", "set", "near0", "down"]);
    for kind in ["xdp", "packet"] {
        let run = wire.send(&lab, kind, &[]).run();
        assert_refused(&run, &["near0 is down", "ip link set near0 up"]);
    }
}

#[test]
fn a_missing_interface_is_one_line() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::to_kernel(&lab);
    for kind in ["xdp", "packet"] {
        let port = format!("{kind}:near1");
        let run = lab
            .dropless(&["send", "--json", "--port", &port])
            .within(&wire.near)
            .run();
        assert_refused(&run, &["no interface is called near1", &format!("{kind}:near0")]);
    }
}

#[test]
fn an_interface_without_link_is_one_line() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::to_kernel(&lab);
    wire.far.ip(&["link", "set", "far0", "down"]);
    let run = wire.send(&lab, "packet", &["--wait", "200ms"]).run();
    assert_refused(&run, &["packet:near0 has no link"]);
}

/// The peer goes down in the middle of the run.
fn a_lost_link_is_named(kind: &str) {
    let Some(lab) = require(&ECHO) else { return };
    let wire = Wire::to_kernel(&lab);
    let _server = wire.echo_server(false);
    let arguments = ["--rate", "1kpps", "--duration", "60s", "--drain", "300ms"];
    let mut running = wire.send(&lab, kind, &arguments).spawn();
    wait_for_traffic(&wire, &mut running);
    wire.far.ip(&["link", "set", "far0", "down"]);
    std::thread::sleep(GONE);
    let run = interrupted(running);
    assert_invalid(&run, &format!("port {kind}:near0 lost its link"));
    assert_conserved(&run);
}

#[test]
fn a_lost_link_is_named_over_af_xdp() {
    a_lost_link_is_named("xdp");
}

#[test]
fn a_lost_link_is_named_over_af_packet() {
    a_lost_link_is_named("packet");
}

/// The interface itself goes away in the middle of the run: an invalid result, not a crash.
fn a_removed_interface_is_named(kind: &str) {
    let Some(lab) = require(&ECHO) else { return };
    let wire = Wire::to_kernel(&lab);
    let _server = wire.echo_server(false);
    let arguments = ["--rate", "1kpps", "--duration", "60s", "--drain", "300ms"];
    let mut running = wire.send(&lab, kind, &arguments).spawn();
    wait_for_traffic(&wire, &mut running);
    wire.near.ip(&["link", "delete", "near0"]);
    std::thread::sleep(GONE);
    let run = interrupted(running);
    assert_invalid(&run, &format!("port {kind}:near0 lost its link"));
    assert_conserved(&run);
    // Of what the driver took, the rest never left its ring: that is where it is booked, not as errors of refusals.
    if kind == "xdp" {
        assert!(run.number("ledger.lost_at.tx_held") > 0, "{run}");
        assert_eq!(
            run.json()["ledger"]["lost_at"]["tx_error"],
            serde_json::Value::Null,
            "{run}"
        );
    }
}

#[test]
fn a_removed_interface_is_named_over_af_xdp() {
    a_removed_interface_is_named("xdp");
}

#[test]
fn a_removed_interface_is_named_over_af_packet() {
    a_removed_interface_is_named("packet");
}

/// A reflector without its interface has nothing left to do: it ends and says so.
fn a_reflector_ends_with_its_interface(kind: &str) {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::to_kernel(&lab);
    let reflector = wire.reflect_near(&lab, kind, &[OURS]);
    wire.far.run("ping", &["-c", "1", "-W", "5", "198.18.0.9"]);
    wire.near.ip(&["link", "delete", "near0"]);
    let run = reflector.wait(Duration::from_secs(30));
    assert_invalid(&run, &format!("port {kind}:near0 lost its link"));
    assert!(run.number("answered") >= 2, "{run}");
}

#[test]
fn a_reflector_ends_with_its_interface_over_af_xdp() {
    a_reflector_ends_with_its_interface("xdp");
}

#[test]
fn a_reflector_ends_with_its_interface_over_af_packet() {
    a_reflector_ends_with_its_interface("packet");
}
