//! `kernel:` ports over a virtual wire: every way to and from every way, a real kernel as peer, and losses with their names.

use std::time::Duration;

use crate::support::wire::{assert_conserved, assert_invalid, assert_refused, echo_server, interrupted};
use crate::support::{Dropless, Lab, Namespace, Need, Running, require};
use nix::sys::signal::Signal;

const NEEDS: [Need; 1] = [Need::Namespaces];
const WAYS: [&str; 3] = ["call", "mmsg", "uring"];

/// A wire whose ends are addresses of two kernels.
struct Ends {
    near: Namespace,
    far: Namespace,
}

impl Ends {
    fn new(lab: &Lab) -> Self {
        let ends = Self {
            near: lab.namespace("near"),
            far: lab.namespace("far"),
        };
        ends.near.veth("near0", &ends.far, "far0");
        ends.near.up("near0", &["198.18.0.1/24", "2001:2::1/64"]);
        ends.far.up("far0", &["198.18.0.2/24", "2001:2::2/64"]);
        ends.near.wait_for_link("near0");
        ends.far.wait_for_link("far0");
        ends
    }

    fn send(&self, lab: &Lab, port: &str, arguments: &[&str]) -> Dropless {
        // A machine that stands still for a while delays its packets: none is given up, none comes too late. Only
        // where some are lost for sure is the whole drain time waited.
        let common = ["send", "--json", "--backlog", "1M", "--port", port];
        let mut all = [&common[..], arguments].concat();
        if !all.contains(&"--drain") {
            all.extend(["--drain", "5s"]);
        }
        lab.dropless(&all).within(&self.near)
    }

    fn reflect(&self, lab: &Lab, port: &str, arguments: &[&str]) -> Running {
        let mut running = lab
            .dropless(&[&["reflect", "--json", "--port", port][..], arguments].concat())
            .within(&self.far)
            .spawn();
        running.wait_for("reflecting on", Duration::from_secs(30));
        running
    }
}

/// Nothing here is faster than the kernel: all of it comes back, and neither side started DPDK.
#[test]
fn every_packet_comes_back_by_every_way() {
    let Some(lab) = require(&NEEDS) else { return };
    let ends = Ends::new(&lab);
    for (index, way) in WAYS.into_iter().enumerate() {
        // Each way is tried against another one, in either direction.
        let other = WAYS[(index + 1) % WAYS.len()];
        let reflector = ends.reflect(&lab, &format!("kernel:198.18.0.2,io={other}"), &[]);
        let run = ends
            .send(
                &lab,
                &format!("kernel:198.18.0.1,io={way}"),
                &[
                    "--rate", "3kpps", "--count", "1500", "--size", "64,300", "--verify", "payload",
                ],
            )
            .run();
        assert_eq!(run.number("received"), 1500, "{run}");
        assert_eq!(run.number("duplicate") + run.number("corrupt"), 0, "{run}");
        assert_eq!(run.number("reordered"), 0, "{run}");
        assert_conserved(&run);
        let json = run.json();
        assert_eq!(json["ports"][0]["driver"], format!("sockets_{way}"), "{run}");
        assert_eq!(json["pool"]["size"], 0, "{run}");
        let far = interrupted(reflector);
        assert_eq!(far.number("returned") - far.number("told"), 1500, "{far}");
    }
}

#[test]
fn ipv6_and_several_queues_come_back_as_well() {
    let Some(lab) = require(&NEEDS) else { return };
    let ends = Ends::new(&lab);
    let reflector = ends.reflect(&lab, "kernel:[2001:2::2]:9,queues=2,io=mmsg", &[]);
    let arguments = ["--to", "[2001:2::2]:9", "--rate", "3kpps", "--count", "3k"];
    let queues = ["--tx-queues", "2", "--rx-queues", "2"];
    let run = ends
        .send(&lab, "kernel:2001:2::1", &[&arguments[..], &queues].concat())
        .run();
    assert_eq!(run.number("received"), 3000, "{run}");
    assert_conserved(&run);
    let far = interrupted(reflector);
    assert_eq!(far.code, Some(0), "{far}");
}

/// A server that knows nothing of us. All probes fit into its socket, whoever stands still.
#[test]
fn every_probe_is_echoed_by_a_server_of_the_kernel() {
    let needs = [Need::Namespaces, Need::Tool("socat")];
    let Some(lab) = require(&needs) else { return };
    let ends = Ends::new(&lab);
    for way in WAYS {
        let _server = echo_server(&ends.far, false);
        let port = format!("kernel:198.18.0.1,io={way}");
        let run = ends
            .send(&lab, &port, &["--rate", "500pps", "--count", "250"])
            .run();
        assert_eq!(run.number("received"), 250, "{run}");
        assert_conserved(&run);
    }
}

/// A receiver that does not read loses what its socket has no room for, and says so: nothing is unexplained.
#[test]
fn what_a_slow_reader_drops_is_counted_to_the_packet() {
    let Some(lab) = require(&NEEDS) else { return };
    let ends = Ends::new(&lab);
    for way in WAYS {
        let reflector = ends.reflect(
            &lab,
            &format!("kernel:198.18.0.2,io={way}"),
            &["--descriptors", "64"],
        );
        let mut sender = ends
            .send(
                &lab,
                "kernel:198.18.0.1,io=mmsg",
                &["--rate", "10kpps", "--duration", "1200ms", "--drain", "1s"],
            )
            .spawn();
        sender.until_sending(Duration::from_secs(30));
        reflector.signal(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(300));
        reflector.signal(Signal::SIGCONT);
        let run = sender.wait(Duration::from_secs(30));
        let dropped = run.number("ledger.lost_at.reflector_rx_missed");
        assert!(dropped > 100, "{run}");
        assert_eq!(run.number("lost"), dropped, "{run}");
        assert_eq!(run.number("unexplained"), 0, "{run}");
        assert_conserved(&run);
        let far = interrupted(reflector);
        assert_eq!(far.number("ports.0.rx_missed"), dropped, "{far}");
    }
}

#[test]
fn a_port_that_nobody_listens_on_is_named() {
    let Some(lab) = require(&NEEDS) else { return };
    let ends = Ends::new(&lab);
    let run = ends
        .send(
            &lab,
            "kernel:198.18.0.1",
            &["--rate", "1kpps", "--count", "500", "--drain", "1s"],
        )
        .run();
    assert_invalid(&run, "nothing was received");
    assert!(run.stdout.contains("nothing listens on that UDP port"), "{run}");
}

#[test]
fn a_frame_that_would_be_cut_in_pieces_is_refused() {
    let Some(lab) = require(&NEEDS) else { return };
    let ends = Ends::new(&lab);
    let run = ends
        .send(&lab, "kernel:198.18.0.1", &["--size", "1519", "--count", "1"])
        .run();
    assert_refused(&run, &["frames of up to 1518 bytes", "send none that are longer"]);
}

/// The namespace counts packets with wrong checksums, and the run says so. They are nobody's full buffer, though of long ones the
/// kernel looks at the checksum when they are read, and has the socket count them.
#[test]
fn what_the_kernel_throws_away_for_its_checksum_is_told() {
    for size in ["64", "512"] {
        wrong_checksums(size);
    }
}

fn wrong_checksums(size: &str) {
    let Some(lab) = require(&NEEDS) else { return };
    let ends = Ends::new(&lab);
    // Over there the kernel is no bystander: it would answer that nobody listens.
    ends.far.ip(&["address", "flush", "dev", "far0"]);
    let reflector = ends.reflect(&lab, "packet:far0", &[]);
    let run = ends
        .send(
            &lab,
            "kernel:198.18.0.1",
            &[
                "--size", size, "--rate", "1kpps", "--count", "500", "--drain", "1s",
            ],
        )
        .run();
    assert_eq!(run.number("ports.0.rx_missed"), 0, "{run}");
    // What is left of a checksum that nobody completed fits one packet of 65,536, by its time: that one comes through.
    assert!(run.number("received") < 10, "{run}");
    let told = format!(
        "the kernel dropped {} UDP packets with wrong checksums",
        run.number("lost")
    );
    assert!(run.stdout.contains(&told), "{run}");
    assert!(run.stdout.contains("ethtool -K INTERFACE tx off"), "{run}");
    let _ = interrupted(reflector);
}
