//! A tap interface with this machine's kernel behind it: it echoes, pings, and judges our checksums.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::capture::{assert_balanced, capture};
use crate::support::wire::{assert_all_back, assert_conserved, echo_server, interrupted};
use crate::support::{Namespace, Need, require, until};

const NEEDS: [Need; 3] = [Need::Namespaces, Need::File("/dev/net/tun"), Need::Tool("ping")];
const ECHO: [Need; 3] = [Need::Namespaces, Need::File("/dev/net/tun"), Need::Tool("socat")];
const SOON: Duration = Duration::from_secs(20);
/// All probes fit into the server's socket, whoever stands still.
const TO: [&str; 10] = [
    "send",
    "--json",
    "--port=tap:dl0",
    "--from=10.9.0.2",
    "--to=10.9.0.1",
    "--count=250",
    "--rate=500pps",
    "--backlog=1000",
    "--drain=5s",
    "--wait=20s",
];

/// Waits until dropless has made the interface.
fn wait_for_tap(namespace: &Namespace) {
    let there = until(SOON, || {
        namespace.ip(&["-o", "link", "show", "up"]).contains("dl0")
    });
    assert!(there, "dl0 never came up");
}

#[test]
fn the_kernel_echoes_every_probe() {
    let Some(lab) = require(&ECHO) else { return };
    let namespace = lab.namespace("tap");
    let _server = echo_server(&namespace, false);
    let running = lab.dropless(&TO).within(&namespace).spawn();
    wait_for_tap(&namespace);
    namespace.up("dl0", &["10.9.0.1/24"]);
    let run = running.wait(Duration::from_secs(60));
    assert_all_back(&run);
    assert_conserved(&run);
    assert_eq!((run.number("sent"), run.number("received")), (250, 250), "{run}");
    let gone = until(SOON, || !namespace.ip(&["-o", "link", "show"]).contains("dl0"));
    assert!(gone, "the interface outlived the run");
}

#[test]
fn offloaded_checksums_are_good() {
    let Some(lab) = require(&[
        Need::Tool("tcpdump"),
        Need::Tool("tshark"),
        Need::Tool("socat"),
        NEEDS[0],
        NEEDS[1],
    ]) else {
        return;
    };
    let namespace = lab.namespace("tap");
    let _server = echo_server(&namespace, false);
    let running = lab
        .dropless(&TO)
        .arg("--checksum-offload")
        .within(&namespace)
        .spawn();
    wait_for_tap(&namespace);
    let file = lab.path("tap.pcap").display().to_string();
    let mut capture = namespace.spawn(
        "tcpdump",
        &[
            "-i",
            "dl0",
            // Room for all of them: a packet takes 64 KiB.
            "-B",
            "65536",
            "--immediate-mode",
            "-U",
            "-w",
            &file,
            "udp",
            "dst",
            "port",
            "7",
        ],
    );
    capture.wait_for("listening on", SOON);
    namespace.up("dl0", &["10.9.0.1/24"]);
    let run = running.wait(Duration::from_secs(60));
    assert_all_back(&run);
    assert_eq!((run.number("received"), run.number("corrupt")), (250, 0), "{run}");
    let _ = interrupted(capture);
    let fields = [
        "-T",
        "fields",
        "-e",
        "ip.checksum.status",
        "-e",
        "udp.checksum.status",
    ];
    let checks = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    let shown = namespace.run("tshark", &[&["-r", &file][..], &checks, &fields].concat());
    // The probes, and what asked the far side for its counters: more than once, as an echo server does not answer it.
    assert!(shown.lines().count() > 250, "{shown}");
    let bad = shown.lines().find(|line| !matches!(*line, "1\t1" | "Good\tGood"));
    assert_eq!(bad, None, "a checksum is wrong");
}

#[test]
fn the_kernel_pings_a_reflector() {
    let Some(lab) = require(&NEEDS) else { return };
    let namespace = lab.namespace("tap");
    let arguments = [
        "reflect",
        "--json",
        "--port=tap:dl0",
        "--address=10.9.0.9,fd09::9",
    ];
    let mut reflector = lab.dropless(&arguments).within(&namespace).spawn();
    reflector.wait_for("reflecting on", SOON);
    wait_for_tap(&namespace);
    namespace.up("dl0", &["10.9.0.1/24", "fd09::1/64"]);
    namespace.run("ping", &["-c", "3", "-i", "0.2", "-W", "5", "10.9.0.9"]);
    namespace.run("ping", &["-6", "-c", "3", "-i", "0.2", "-W", "5", "fd09::9"]);
    let run = interrupted(reflector);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.number("answered") >= 8, "{run}");
}

/// The queue towards us is the kernel's, which counts what it had no room for; no driver does.
#[test]
fn what_the_kernel_had_no_room_for_is_missed() {
    let Some(lab) = require(&ECHO) else { return };
    let namespace = lab.namespace("tap");
    let running = capture(&lab, &namespace, &["--port", "tap:dl0"]);
    namespace.up("dl0", &["10.9.0.1/24"]);
    let neighbour = [
        "neigh",
        "add",
        "10.9.0.2",
        "lladdr",
        "02:00:00:00:00:09",
        "dev",
        "dl0",
    ];
    namespace.ip(&neighbour);
    let counted = |name: &str| -> u64 {
        let count = namespace.run("cat", &[&format!("/sys/class/net/dl0/statistics/{name}")]);
        count.trim().parse().expect("a count")
    };
    let before = counted("tx_dropped");
    running.signal(Signal::SIGSTOP);
    let flood = "head -c 250000 /dev/zero | socat -u -b 50 - UDP4-SENDTO:10.9.0.2:7";
    namespace.run("sh", &["-c", flood]);
    running.signal(Signal::SIGCONT);
    // It counts as sent what we have read.
    let dropped = || counted("tx_dropped") - before;
    assert!(
        until(SOON, || counted("tx_packets") + dropped() >= 5000),
        "{running:?}"
    );
    let dropped = dropped();
    let run = interrupted(running);
    assert_balanced(&run);
    let missed = run.number("ports.0.rx_missed");
    assert!(missed >= dropped && missed > 0, "{dropped} of {run}");
    assert!(run.number("captured") + missed >= 5000, "{run}");
    assert_eq!(run.code, Some(1), "{run}");
}
