//! An adversary's suite: each test is an experiment that once made a wrong result look like a valid one.

mod below;
mod bunches;

use std::net::UdpSocket;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::wire::{Wire, assert_conserved, has_note, interrupted};
use crate::support::{Finished, Lab, Namespace, Need, Running, require, until};

const HUB: [Need; 2] = [Need::Namespaces, Need::Tool("nft")];

/// Two ports of a sender and a reflector on a bridge that learns nothing: what the reflector returns goes to both ports.
struct Hub {
    near: Namespace,
    far: Namespace,
    _middle: Namespace,
}

impl Hub {
    /// What goes over the bridge is filtered by these rules of nftables, of a chain that sees every packet once. What one
    /// port sends reaches the reflector only.
    fn new(lab: &Lab, rules: &str) -> Self {
        Self::between(lab, "iifname != middle2 oifname != middle2 drop", rules)
    }

    /// The same, with a rule for what may pass from port to port.
    fn between(lab: &Lab, between: &str, rules: &str) -> Self {
        let (near, middle, far) = (
            lab.namespace("near"),
            lab.namespace("middle"),
            lab.namespace("far"),
        );
        near.veth("near0", &middle, "middle0");
        near.veth("near1", &middle, "middle1");
        far.veth("far0", &middle, "middle2");
        middle.ip(&["link", "add", "bridge0", "type", "bridge", "ageing_time", "0"]);
        for interface in ["middle0", "middle1", "middle2"] {
            middle.ip(&["link", "set", interface, "master", "bridge0"]);
        }
        for (namespace, interfaces) in [
            (&near, &["near0", "near1"][..]),
            (&far, &["far0"]),
            (&middle, &["middle0", "middle1", "middle2", "bridge0"]),
        ] {
            for interface in interfaces {
                namespace.without_ipv6(interface);
                namespace.ip(&["link", "set", interface, "up"]);
            }
        }
        let table = format!(
            "table bridge fooled {{\nchain forward {{ type filter hook forward priority 0; {between}; }}\n\
             chain once {{ type filter hook prerouting priority 0;\n{rules}\n}}\n}}"
        );
        middle.run("nft", &[&table]);
        near.wait_for_link("near0");
        near.wait_for_link("near1");
        Self {
            near,
            far,
            _middle: middle,
        }
    }

    fn reflect(&self, lab: &Lab, arguments: &[&str]) -> Running {
        let port = ["reflect", "--json", "--port", "packet:far0"];
        let mut running = lab
            .dropless(&[&port[..], arguments].concat())
            .within(&self.far)
            .spawn();
        running.wait_for("reflecting on", Duration::from_secs(30));
        running
    }

    fn send(&self, lab: &Lab, arguments: &[&str]) -> Finished {
        let ports = [
            "send",
            "--json",
            "--port",
            "packet:near0",
            "--port",
            "packet:near1",
        ];
        lab.dropless(&[&ports[..], arguments].concat())
            .within(&self.near)
            .run()
    }
}

/// Of the replies to either port every second one is lost, and all others come to both: as many arrive as were sent.
#[test]
fn copies_on_another_port_do_not_hide_losses() {
    let Some(lab) = require(&HUB) else { return };
    let lose =
        |address: &str| format!("iifname middle2 ip daddr {address} udp sport 7 numgen inc mod 2 == 0 drop");
    let hub = Hub::new(&lab, &[lose("198.18.0.1"), lose("198.18.0.3")].join("\n"));
    let reflector = hub.reflect(&lab, &[]);
    let run = hub.send(&lab, &["--rate", "5kpps", "--count", "4000", "--drain", "500ms"]);
    let _ = interrupted(reflector);
    assert_conserved(&run);
    let seen = ["sent", "received", "lost", "duplicate"].map(|name| run.number(name));
    assert_eq!(seen, [4000, 2000, 2000, 2000], "{run}");
    assert_eq!(run.code, Some(1), "{run}");
}

/// UDP without a checksum is legal, and VXLAN sends it so (RFC 7348): no damage, least of all of ours.
#[test]
fn strangers_without_checksums_are_not_our_damage() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("socat")]) else {
        return;
    };
    let wire = Wire::to_kernel(&lab);
    let echo = wire.echo_server(false);
    let address = wire.near.mac("near0");
    let neighbour = ["neigh", "add", "198.18.0.1", "dev", "far0", "lladdr", &address];
    wire.far.ip(&neighbour);
    let mut sender = wire
        .send(
            &lab,
            "packet",
            &["--rate", "1kpps", "--count", "2000", "--drain", "500ms"],
        )
        .spawn();
    sender.until_sending(Duration::from_secs(30));
    let strangers =
        "head -c 50000 /dev/zero | socat -u -b 50 - UDP4-SENDTO:198.18.0.1:4789,setsockopt-int=1:11:1";
    wire.far.run("sh", &["-c", strangers]);
    let run = sender.wait(Duration::from_secs(30));
    drop(echo);
    assert_conserved(&run);
    let seen = [
        "received",
        "corrupt",
        "lost",
        "ledger.arrived.foreign.no_checksum",
    ]
    .map(|name| run.number(name));
    assert_eq!((run.code, seen), (Some(0), [2000, 0, 0, 1000]), "{run}");
}

/// What this machine itself sends on the interface is no packet of the wire: returned, it would come from its peer's
/// addresses, and switches would learn where the peer is not.
#[test]
fn what_the_host_sends_is_not_received() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("socat")]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    wire.near.up("near0", &["198.18.0.1/24"]);
    let peer = [
        "neigh",
        "add",
        "198.18.0.2",
        "dev",
        "near0",
        "lladdr",
        "02:00:00:00:00:09",
    ];
    let reflector = wire.reflect_near(&lab, "packet", &[]);
    wire.near.ip(&peer);
    let host = "head -c 5000 /dev/zero | socat -u -b 50 - UDP4-SENDTO:198.18.0.2:7";
    wire.near.run("sh", &["-c", host]);
    let sent = wire
        .near
        .run("cat", &["/sys/class/net/near0/statistics/tx_packets"]);
    let run = interrupted(reflector);
    assert!(sent.trim().parse::<u64>().expect("a count") >= 100, "{sent}");
    assert_eq!((run.number("received"), run.number("returned")), (0, 0), "{run}");
}

/// A port is open, and its ring overflows, while another one waits for its link: what was missed then is not the run's, and
/// takes no blame for what the path lost.
#[test]
fn what_was_missed_before_the_run_is_not_charged_to_it() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("socat")]) else {
        return;
    };
    let wire = Wire::to_kernel(&lab);
    let echo = wire.echo_server(false);
    wire.near.veth("near1", &wire.far, "far1");
    wire.near.without_ipv6("near1");
    wire.far.without_ipv6("far1");
    wire.near.up("near1", &[]);
    let (near, far) = (wire.near.mac("near0"), wire.far.mac("far0"));
    wire.far
        .ip(&["neigh", "add", "198.18.0.1", "dev", "far0", "lladdr", &near]);
    let second = ["--port", "packet:near1", "--to-mac", &far, "--wait", "30s"];
    let flags = ["--rate", "2kpps", "--count", "2000", "--drain", "500ms"];
    let sender = wire.send(&lab, "packet", &[&second[..], &flags].concat()).spawn();
    let is_open = until(Duration::from_secs(20), || {
        wire.near.run("cat", &["/proc/net/packet"]).lines().count() > 2
    });
    assert!(is_open, "{sender:?}");
    let flood = "head -c 1000000 /dev/zero | socat -u -b 50 - UDP4-SENDTO:198.18.0.1:4789";
    wire.far.run("sh", &["-c", flood]);
    wire.far.up("far1", &[]);
    let run = sender.wait(Duration::from_secs(30));
    drop(echo);
    assert_conserved(&run);
    // Nobody answers at the far end of the second port.
    let seen = ["sent", "received", "unexplained", "ports.0.rx_missed"].map(|name| run.number(name));
    assert_eq!(seen, [2000, 1000, 1000, 0], "{run}");
}

/// What waited in the ring of a port when the run began did not come in the run's time: it is in no rate and in no row. A
/// capture throws it away, a reflector serves it.
#[test]
fn what_came_before_the_run_is_in_no_rate() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    wire.near.up("near0", &["198.18.0.1/24"]);
    let mac = wire.far.mac("far0");
    wire.near
        .ip(&["neigh", "add", "198.18.0.2", "dev", "near0", "lladdr", &mac]);
    let early = |command| {
        let flags = [command, "--json", "--no-doctor", "--port", "packet:far0"];
        let run = lab
            .dropless(&[&flags[..], &["--duration", "20ms"]].concat())
            .within(&wire.far)
            .spawn();
        let sockets = format!("/proc/{}/net/packet", run.id());
        // Its ring is there once it is bound: the fifth column is the interface.
        let takes =
            |line: &str| matches!(line.split_whitespace().nth(4), Some(at) if at != "0" && at != "Iface");
        let is_open = || std::fs::read_to_string(&sockets).is_ok_and(|all| all.lines().any(takes));
        assert!(until(Duration::from_secs(20), is_open), "{run:?}");
        run.signal(Signal::SIGSTOP);
        let has_begun = run.stderr().contains("far0; Ctrl-C");
        wire.near.inside(|| {
            let socket = UdpSocket::bind("198.18.0.1:0").expect("a socket");
            for _ in 0..50 {
                socket.send_to(b"early", "198.18.0.2:7").expect("it is sent");
            }
        });
        run.signal(Signal::SIGCONT);
        let run = run.wait(Duration::from_secs(30));
        (!has_begun).then_some(run)
    };
    for (command, served) in [("capture", 0), ("reflect", 50)] {
        // It may be stopped too late.
        let run = (0..10)
            .find_map(|_| early(command))
            .expect("a run that was stopped in time");
        assert_eq!(run.number("received"), served, "{run}");
        assert_eq!(run.json()["rate_rx_pps"], 0.0, "{run}");
        assert_eq!(has_note(&run.json(), "came_early"), served > 0, "{run}");
        let directory = lab.path(run.json()["run"].as_str().expect("a directory"));
        let rows = std::fs::read_to_string(directory.join("intervals.csv")).expect("rows");
        let came = rows
            .lines()
            .skip(1)
            .filter(|row| row.split(',').nth(1) != Some("0"));
        assert_eq!(came.count(), 0, "{rows}");
    }
}

/// Two ports ask the same reflector: what it dropped on purpose counts once.
#[test]
fn one_reflector_behind_two_ports_has_one_account() {
    let Some(lab) = require(&HUB) else { return };
    let hub = Hub::new(&lab, "");
    let reflector = hub.reflect(&lab, &["--fault", "drop=10%"]);
    let run = hub.send(&lab, &["--rate", "5kpps", "--count", "4000", "--drain", "500ms"]);
    let reflector = interrupted(reflector);
    assert_conserved(&run);
    let dropped = reflector.number("faults.drop");
    assert!(dropped > 0, "{reflector}");
    let told =
        ["ledger.raw.fault_drop", "lost", "ledger.raw.reflector_received"].map(|name| run.number(name));
    assert_eq!(told, [dropped, dropped, 4000], "{run}\n{reflector}");
    assert!(has_note(&run.json(), "several_ports"), "{run}");
}

/// What the reflector drops comes to the other port all the same, as it was sent: that is no return.
#[test]
fn ports_that_hear_each_other_do_not_hide_what_the_far_side_lost() {
    let Some(lab) = require(&HUB) else { return };
    let hub = Hub::between(&lab, "", "");
    let reflector = hub.reflect(&lab, &["--fault", "drop=50%"]);
    let run = hub.send(&lab, &["--rate", "5kpps", "--count", "4000", "--drain", "500ms"]);
    let _ = interrupted(reflector);
    assert_conserved(&run);
    assert_eq!(run.code, Some(2), "{run}");
    assert_eq!(run.json()["reasons"][0]["code"], "heard_each_other", "{run}");
}

/// Two senders, one reflector that drops: what it tells each of them is the sum, and takes no loss of the path from either.
#[test]
fn what_a_reflector_lost_of_others_is_at_most_ours() {
    let Some(lab) = require(&HUB) else { return };
    let hub = Hub::new(&lab, "");
    let reflector = hub.reflect(&lab, &["--fault", "drop=10%"]);
    let send = |port, duration| {
        let flags = [
            "send",
            "--json",
            "--port",
            port,
            "--rate",
            "2kpps",
            "--duration",
            duration,
            "--drain",
            "500ms",
        ];
        lab.dropless(&flags).within(&hub.near).spawn()
    };
    // The other one was there before, and is there afterwards.
    let mut other = send("packet:near1", "60s");
    other.until_sending(Duration::from_secs(30));
    let run = send("packet:near0", "1s").wait(Duration::from_secs(30));
    let other = interrupted(other);
    let _ = interrupted(reflector);
    for run in [&run, &other] {
        assert_conserved(run);
        assert!(has_note(&run.json(), "far_side_shared"), "{run}");
        let places = run.json()["ledger"]["places"].as_array().expect("places").clone();
        let injected = places.iter().find(|charge| charge["place"] == "fault_drop");
        assert_eq!(injected.expect("a place")["precision"], "at_most", "{run}");
    }
}

/// A reflector that is killed takes its account with it: its successor's is another one, and a note says so.
#[test]
fn a_reflector_restarted_in_the_middle_has_a_partial_account() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    let first = wire.reflect_far(&lab, "packet", &[]);
    let mut sender = wire
        .send(
            &lab,
            "packet",
            &["--rate", "1kpps", "--duration", "60s", "--drain", "500ms"],
        )
        .spawn();
    sender.until_sending(Duration::from_secs(30));
    first.kill();
    let second = wire.reflect_far(&lab, "packet", &[]);
    // It counts some, too.
    std::thread::sleep(Duration::from_secs(1));
    let run = interrupted(sender);
    let second = interrupted(second);
    assert!(second.number("received") > 0, "{second}");
    assert_nothing_is_told_by_its_successor(&run);
}

/// What the successor dropped of others' probes is more than what was lost before it came, and explains none of that.
#[test]
fn what_a_restarted_reflector_lost_of_others_explains_nothing() {
    let Some(lab) = require(&HUB) else { return };
    let hub = Hub::new(&lab, "");
    let send = |port, flags: &[&str]| {
        let fixed = ["send", "--json", "--port", port, "--drain", "500ms"];
        lab.dropless(&[&fixed[..], flags].concat())
            .within(&hub.near)
            .spawn()
    };
    let first = hub.reflect(&lab, &[]);
    let mut sender = send("packet:near0", &["--rate", "1kpps", "--duration", "60s"]);
    sender.until_sending(Duration::from_secs(30));
    // So that more left than comes to the successor: that others were served does not show.
    std::thread::sleep(Duration::from_secs(5));
    first.kill();
    let second = hub.reflect(&lab, &["--fault", "drop=100%"]);
    let other = send("packet:near1", &["--rate", "4kpps", "--count", "4k"]).wait(Duration::from_secs(30));
    assert_eq!(other.number("lost"), 4000, "{other}");
    let (run, second) = (interrupted(sender), interrupted(second));
    assert!(second.number("received") < run.number("sent"), "{run}\n{second}");
    assert!(
        second.number("faults.drop") > run.number("lost"),
        "{run}\n{second}"
    );
    assert_nothing_is_told_by_its_successor(&run);
}

fn assert_nothing_is_told_by_its_successor(run: &Finished) {
    assert_conserved(run);
    let json = run.json();
    assert!(has_note(&json, "far_side_restarted"), "{run}");
    assert!(json["ledger"]["raw"]["reflector_received"].is_null(), "{run}");
    assert!(run.number("lost") > 0, "{run}");
    assert_eq!(run.number("lost"), run.number("unexplained"), "{run}");
}
