//! Debian's `dpdk-testpmd` at the other end: what we count and what it counts is the same, to the packet.

use std::time::Duration;

use crate::support::wire::assert_valid_but_for_time;
use crate::support::{Finished, Lab, Need, PortStats, Running, Testpmd, require, until};

const NEEDS: &[Need] = &[Need::Root, Need::Tool("dpdk-testpmd"), Need::Tool("stdbuf")];
const LIMIT: Duration = Duration::from_secs(20);

/// A testpmd that serves a memif at `path` and forwards as `mode` says.
fn serve(lab: &Lab, path: &str, mode: &str) -> Testpmd {
    let device = format!("--vdev=net_memif0,role=server,socket={path},socket-abstract=no");
    let mode = format!("--forward-mode={mode}");
    lab.testpmd()
        .eal(device)
        .app(mode)
        .app("--disable-link-check")
        .app("--no-flush-rx")
        .open()
}

fn socket(lab: &Lab) -> String {
    lab.path("memif.sock")
        .to_str()
        .expect("a path of text")
        .to_owned()
}

/// Frames that testpmd's forwarding could not get rid of, from the report of its `stop`.
fn dropped(report: &str) -> u64 {
    let mut words = report.split_whitespace();
    let total = words
        .by_ref()
        .find(|word| *word == "TX-dropped:")
        .and_then(|_| words.next());
    total
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("no TX-dropped in {report}"))
}

/// A run over testpmd's port and, beside it, an embedded ring that holds packets back: so the run waits its whole drain
/// time for them, and testpmd, whose memif forgets its counters with the peer, can be asked meanwhile.
fn circle(lab: &Lab, port: &str, extra: &[&str]) -> Running {
    let common = [
        "send",
        "--json",
        "--quiet",
        "--port",
        port,
        "--port",
        "ring",
        "--to-mac",
        "02:00:00:00:00:09",
    ];
    let ending = [
        "--fault",
        "delay=1%:60s",
        "--seed",
        "7",
        "--drain",
        "2s",
        "--wait",
        "20s",
    ];
    lab.dropless(&[&common[..], &ending, extra].concat()).spawn()
}

/// Neither side counts a packet more or less than the other.
fn assert_agreement(mut testpmd: Testpmd, mut running: Running, sent: u64) {
    let arrived = until(LIMIT, || testpmd.stats()[&0].rx_packets >= sent);
    let there = settled(&mut testpmd);
    let report = testpmd.stop();
    let lost_there = dropped(&report);
    assert!(arrived && running.is_alive(), "{there:?}, not {sent} {running:?}");
    let run = running.wait(LIMIT);
    drop(testpmd);
    assert_eq!(run.number("ports.0.tx_packets"), sent, "{run}");
    assert_eq!(there.rx_packets, sent, "{there:?} {run}");
    assert_eq!(
        there.tx_packets,
        run.number("ports.0.rx_packets"),
        "{there:?} {run}"
    );
    assert_eq!(there.rx_packets, there.tx_packets + lost_there, "{report} {run}");
    assert_eq!(
        run.number("lost"),
        run.number("ledger.lost_at.reflector_held") + lost_there,
        "{run}"
    );
    assert_eq!(
        run.number("unexplained"),
        lost_there,
        "what testpmd dropped is no doing of ours: {run}"
    );
    assert_eq!(
        ["duplicate", "corrupt", "reordered", "late"].map(|name| run.number(name)),
        [0; 4],
        "{run}"
    );
    assert_eq!(run.number("pool.leaked"), 0, "{run}");
    assert_valid_but_for_time(&run);
}

/// testpmd as reflector of `sent` packets over a memif.
fn reflected_by(mode: &str, extra: &[&str], sent: u64) {
    let Some(lab) = require(NEEDS) else { return };
    let path = socket(&lab);
    let mut testpmd = serve(&lab, &path, mode);
    testpmd.start();
    let both = (2 * sent).to_string();
    let running = circle(
        &lab,
        &format!("memif:{path}"),
        &[&["--count", &both], extra].concat(),
    );
    assert_agreement(testpmd, running, sent);
}

#[test]
fn macswap_returns_what_send_sent() {
    reflected_by("macswap", &["--rate", "20kpps", "--backlog", "1000000"], 10_000);
}

#[test]
fn five_tuple_swap_returns_what_send_sent() {
    let flags = [
        "--rate",
        "20kpps",
        "--backlog",
        "1000000",
        "--flows",
        "100",
        "--size",
        "64,512,1518",
    ];
    reflected_by("5tswap", &[&flags[..], &["--verify", "payload"]].concat(), 10_000);
}

#[test]
fn five_tuple_swap_returns_ipv6_too() {
    let flags = [
        "--rate",
        "20kpps",
        "--backlog",
        "1000000",
        "--to",
        "2001:2::2",
        "--verify",
        "payload",
    ];
    reflected_by("5tswap", &flags, 10_000);
}

#[test]
fn at_full_speed_every_missing_packet_is_one_that_testpmd_dropped() {
    reflected_by("macswap", &["--rate", "max"], 500_000);
}

/// Starts `reflect` and waits until both sides see their link.
fn reflect(lab: &Lab, testpmd: &mut Testpmd, port: &str) -> Running {
    let common = ["reflect", "--json", "--port", port, "--wait", "20s"];
    let running = lab.dropless(&common).spawn();
    let up = until(LIMIT, || {
        testpmd.command("show port info 0").contains("Link status: up")
    });
    assert!(up, "the link never came up: {running:?}");
    running
}

/// Waits until testpmd's counters stand still, and so everything on its way has arrived.
fn settled(testpmd: &mut Testpmd) -> PortStats {
    let mut last = testpmd.stats()[&0];
    let still = until(LIMIT, || {
        std::thread::sleep(Duration::from_millis(250));
        let now = testpmd.stats()[&0];
        std::mem::replace(&mut last, now) == now
    });
    assert!(still, "testpmd never came to rest: {last:?}");
    last
}

fn end(reflect: Running) -> Finished {
    reflect.signal(nix::sys::signal::Signal::SIGINT);
    reflect.wait(LIMIT)
}

#[test]
fn what_flowgen_generates_is_returned_to_the_packet() {
    let Some(lab) = require(NEEDS) else { return };
    let path = socket(&lab);
    let mut testpmd = serve(&lab, &path, "flowgen");
    let running = reflect(&lab, &mut testpmd, &format!("memif:{path}"));
    testpmd.start();
    let moved = until(LIMIT, || testpmd.stats()[&0].rx_packets > 50_000);
    assert!(moved, "nothing came back to flowgen: {running:?}");
    // Sending ends, and one that only receives takes in the last of it.
    testpmd.stop();
    testpmd.command("set fwd rxonly");
    testpmd.start();
    let there = settled(&mut testpmd);
    testpmd.stop();
    let run = end(running);
    testpmd.quit();
    assert_eq!(run.number("received"), there.tx_packets, "{there:?} {run}");
    assert_eq!(run.number("returned"), there.rx_packets, "{there:?} {run}");
    assert_eq!(run.number("returned"), run.number("received"), "{run}");
    assert_eq!(run.number("pool.leaked"), 0, "{run}");
    assert_eq!(run.code, Some(0), "{run}");
}

#[test]
fn what_txonly_sends_and_nobody_takes_back_is_counted_where_it_was_dropped() {
    let Some(lab) = require(NEEDS) else { return };
    let path = socket(&lab);
    let mut testpmd = serve(&lab, &path, "txonly");
    let running = reflect(&lab, &mut testpmd, &format!("memif:{path}"));
    testpmd.start();
    let moved = until(LIMIT, || testpmd.stats()[&0].tx_packets > 3000);
    assert!(moved, "testpmd sent nothing: {running:?}");
    testpmd.stop();
    let sent = settled(&mut testpmd).tx_packets;
    // Until now the ring back was full; now everything on its way comes through.
    testpmd.command("set fwd rxonly");
    testpmd.start();
    let there = settled(&mut testpmd);
    testpmd.stop();
    let run = end(running);
    testpmd.quit();
    let full = run.json()["dropped"]["tx_full"].as_u64().unwrap_or(0);
    assert_eq!(run.number("received"), sent, "{there:?} {run}");
    assert_eq!(run.number("returned"), there.rx_packets, "{there:?} {run}");
    assert_eq!(run.number("received"), run.number("returned") + full, "{run}");
    assert_eq!(run.number("pool.leaked"), 0, "{run}");
}

#[test]
fn a_virtio_user_testpmd_returns_what_send_sent_into_its_vhost() {
    let Some(lab) = require(NEEDS) else { return };
    let path = lab.path("vhost.sock");
    let path = path.to_str().expect("a path of text");
    // Paced: a receiver that loses its core for some milliseconds is still not overrun. What is due before testpmd
    // forwards is kept.
    let flags = ["--rate", "20kpps", "--backlog", "1000000", "--count", "20k"];
    let running = circle(&lab, &format!("vhost:{path}"), &flags);
    assert!(
        until(LIMIT, || lab.path("vhost.sock").exists()),
        "no socket: {running:?}"
    );
    let device = format!("--vdev=net_virtio_user0,path={path},queue_size=1024");
    let mut testpmd = lab
        .testpmd()
        .eal(device)
        .app("--forward-mode=macswap")
        .app("--disable-link-check")
        .app("--no-flush-rx")
        .open();
    testpmd.start();
    assert_agreement(testpmd, running, 10_000);
}
