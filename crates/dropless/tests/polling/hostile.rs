//! Frames that nobody should send, into `reflect` and into `send`: counted by kind, nothing crashes, nothing leaks.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::pcap_file::{MICROSECONDS, Made};
use crate::support::wire::column_sum;
use crate::support::{Finished, Lab, Need, require, until};
use serde_json::Value;
use wire::{Class, Template, TemplateSpec, Verify, checksum};

type Frame = Vec<u8>;

const LIMIT: Duration = Duration::from_secs(20);

/// A sound probe of run `run`, `size` bytes with FCS.
fn probe(run: u8, size: usize) -> Frame {
    let template = Template::new(&spec(run, size));
    template.expect("a template").bytes()[..size - wire::FCS_LEN].to_vec()
}

fn spec(run: u8, frame_size: usize) -> TemplateSpec {
    TemplateSpec {
        run,
        ..TemplateSpec::plain(frame_size)
    }
}

/// A UDP datagram whose own length and whose IP length reach `beyond` the end of the frame.
fn udp_beyond_the_frame(beyond: u16) -> Frame {
    let mut frame = probe(0, 64);
    let longer = |field: &mut [u8]| {
        let value = u16::from_be_bytes([field[0], field[1]]) + beyond;
        field.copy_from_slice(&value.to_be_bytes());
    };
    longer(&mut frame[16..18]);
    longer(&mut frame[38..40]);
    seal_ip(&mut frame);
    frame
}

/// The UDP length alone reaches beyond the IP packet.
fn udp_beyond_the_packet() -> Frame {
    let mut frame = probe(0, 64);
    frame[38..40].copy_from_slice(&1000_u16.to_be_bytes());
    frame
}

/// An ICMP "port unreachable" that quotes `quoted`'s packet (RFC 792).
fn icmp_error(quoted: &[u8]) -> Frame {
    let packet = &quoted[14..];
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 9, 8, 0];
    let total = 20 + 8 + packet.len() as u16;
    frame.extend([
        0x45,
        0,
        (total >> 8) as u8,
        total as u8,
        0,
        0,
        0,
        0,
        64,
        1,
        0,
        0,
        198,
        18,
        0,
        2,
        198,
        18,
        0,
        1,
    ]);
    frame.extend([3, 3, 0, 0, 0, 0, 0, 0]);
    frame.extend(packet);
    let checksum = checksum::field(checksum::sum(&frame[34..]));
    frame[36..38].copy_from_slice(&checksum);
    seal_ip(&mut frame);
    frame
}

fn seal_ip(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let checksum = checksum::field(checksum::sum(&frame[14..34]));
    frame[24..26].copy_from_slice(&checksum);
}

/// Noise of every length; every other frame at least begins like IPv4 or IPv6 over Ethernet.
fn garbage(count: u64) -> Vec<Frame> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let one = |index: u64| {
        let mut frame: Frame = (0..14 + next() % 1486).map(|_| next() as u8).collect();
        match index % 4 {
            1 => frame.splice(12..14, [8, 0, 0x45]).for_each(drop),
            3 => frame.splice(12..14, [0x86, 0xDD, 0x60]).for_each(drop),
            _ => {}
        }
        frame
    };
    (0..count).map(one).collect()
}

/// Every truncation of a probe, from a bare Ethernet header on.
fn truncated() -> Vec<Frame> {
    let whole = probe(0, 64);
    (14..whole.len()).map(|len| whole[..len].to_vec()).collect()
}

/// The capture `in.pcap`.
fn write_pcap(lab: &Lab, frames: &[Frame]) {
    let frames: Vec<Made> = frames.iter().map(|frame| Made::whole(0, frame.clone())).collect();
    MICROSECONDS.write(lab, "in.pcap", &frames);
}

/// `reflect` fed with exactly these frames.
fn reflect(lab: &Lab, frames: &[Frame], extra: &[&str]) -> Finished {
    write_pcap(lab, frames);
    let common = [
        "reflect",
        "--json",
        "--quiet",
        "--port",
        "pcap:in.pcap,out.pcap",
        "--idle-exit",
        "300ms",
    ];
    let run = lab.dropless(&[&common[..], extra].concat()).run();
    assert_eq!(run.number("received"), frames.len() as u64, "{run}");
    assert_eq!(run.number("pool.leaked"), 0, "{run}");
    assert_eq!(run.json()["verdict"], "valid", "{run}");
    run
}

fn counts(value: &Value) -> BTreeMap<String, u64> {
    serde_json::from_value(value.clone()).expect("counts by name")
}

fn named<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
    counts
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

#[test]
fn reflect_says_why_it_returned_what() {
    let Some(lab) = require(&[]) else { return };
    let multicast = || {
        let mut frame = probe(0, 64);
        frame[0] = 1;
        frame
    };
    let fragment = || {
        let mut frame = probe(0, 64);
        frame[20] = 0x20;
        seal_ip(&mut frame);
        frame
    };
    let mut frames = vec![
        probe(0, 64),
        probe(1, 1518),
        udp_beyond_the_frame(1),
        udp_beyond_the_frame(30_000),
    ];
    frames.extend([
        udp_beyond_the_packet(),
        icmp_error(&probe(0, 64)),
        multicast(),
        fragment(),
    ]);
    frames.push([&probe(0, 64)[..12], &[0x88, 0xCC, 1, 2, 3, 4]].concat());
    let run = reflect(&lab, &frames, &[]);
    let wanted = [
        ("bad_length", 3),
        ("not_udp", 1),
        ("multicast", 1),
        ("fragment", 1),
        ("not_ip", 1),
    ];
    assert_eq!(counts(&run.json()["dropped"]), named(wanted), "{run}");
    assert_eq!(run.number("returned"), 2, "{run}");
}

#[test]
fn reflect_survives_garbage_and_counts_every_frame() {
    let Some(lab) = require(&[]) else { return };
    let frames: Vec<Frame> = [garbage(3000), truncated()].concat();
    let run = reflect(&lab, &frames, &[]);
    let mut wanted = BTreeMap::new();
    for frame in &frames {
        if let Err(reason) = wire::reflect(&mut frame.clone(), false) {
            *wanted.entry(reason.name().to_owned()).or_default() += 1;
        }
    }
    assert_eq!(counts(&run.json()["dropped"]), wanted, "{run}");
    assert_eq!(
        run.number("returned") + wanted.values().sum::<u64>(),
        frames.len() as u64,
        "{run}"
    );
}

#[test]
fn reflect_drops_what_is_longer_than_a_buffer_whole() {
    let Some(lab) = require(&[]) else { return };
    let run = reflect(&lab, &[probe(0, 64), probe(0, 9000), probe(0, 64)], &[]);
    assert_eq!(counts(&run.json()["dropped"]), named([("oversized", 1)]), "{run}");
    assert_eq!(run.number("returned"), 2, "{run}");
}

#[test]
fn only_ours_returns_probes_only() {
    let Some(lab) = require(&[]) else { return };
    let mut other = probe(0, 64);
    other[42..44].fill(0);
    let run = reflect(&lab, &[probe(0, 64), other, probe(200, 512)], &["--only-ours"]);
    assert_eq!(counts(&run.json()["dropped"]), named([("not_ours", 1)]), "{run}");
    assert_eq!(run.number("returned"), 2, "{run}");
}

#[test]
fn faults_do_not_touch_what_is_no_probe() {
    let Some(lab) = require(&[]) else { return };
    let frames: Vec<Frame> = [garbage(500), vec![probe(0, 64); 500]].concat();
    let run = reflect(
        &lab,
        &frames,
        &["--fault", "drop=10%,duplicate=10%,corrupt=10%", "--seed", "3"],
    );
    let fault = |name: &str| run.number(&format!("faults.{name}"));
    assert_eq!(fault("seen"), 500, "{run}");
    assert!(fault("drop") > 0 && fault("duplicate") > 0, "{run}");
    let dropped: u64 = counts(&run.json()["dropped"]).values().sum();
    assert_eq!(
        run.number("returned"),
        1000 - dropped - fault("drop") + fault("duplicate"),
        "{run}"
    );
    assert_eq!(
        column_sum(&lab, &run, "dropped"),
        dropped + fault("drop"),
        "{run}"
    );
}

/// The two ends of a memif.
struct Ends {
    /// Options of our port.
    ours: &'static str,
    /// Options of testpmd's device.
    theirs: &'static str,
    /// testpmd's buffers, with the room before a frame.
    buffer: &'static str,
}

/// Runs `send` over a memif into which testpmd throws these frames, once, and from which nothing comes back. An
/// embedded ring beside it goes on undisturbed.
fn thrown_at_send(lab: &Lab, ends: &Ends, frames: &[Frame]) -> Finished {
    write_pcap(lab, frames);
    let path = |name: &str| lab.path(name).to_str().expect("a path of text").to_owned();
    let memif = path("memif.sock");
    let mut testpmd = lab
        .testpmd()
        .eal(format!("--vdev=net_pcap0,rx_pcap={}", path("in.pcap")))
        .eal(format!(
            "--vdev=net_memif0,{},socket={memif},socket-abstract=no",
            ends.theirs
        ))
        .app(format!("--mbuf-size={}", ends.buffer))
        .app("--forward-mode=io")
        // Else it throws away what the capture has before it forwards.
        .app("--no-flush-rx")
        .app("--disable-link-check")
        .open();
    let port = format!("memif:{memif}{}", ends.ours);
    let flags = [
        "--rate",
        "5kpps",
        "--backlog",
        "1000000",
        "--duration",
        "60s",
        "--drain",
        "1s",
    ];
    let common = [
        "send",
        "--json",
        "--port",
        &port,
        "--port",
        "ring",
        "--to-mac",
        "02:00:00:00:00:09",
    ];
    let mut running = lab.dropless(&[&common[..], &flags].concat()).spawn();
    if ends.theirs.starts_with("role=client") {
        // Its driver calls when the port is started, and once only; a server turns callers away while it starts.
        let connected = until(LIMIT, || {
            testpmd.command("port stop 1");
            testpmd.command("port start 1");
            std::thread::sleep(Duration::from_millis(100));
            testpmd.command("show port info 1").contains("Link status: up")
        });
        assert!(connected, "{running:?}");
    }
    // What comes before the run is old, and thrown out.
    running.until_sending(LIMIT);
    testpmd.start();
    let thrown = until(LIMIT, || testpmd.stats()[&1].tx_packets >= frames.len() as u64);
    assert!(thrown, "{:?} of {}: {running:?}", testpmd.stats(), frames.len());
    running.signal(nix::sys::signal::Signal::SIGINT);
    running.wait(LIMIT)
}

const NEEDS: [Need; 3] = [Need::Root, Need::Tool("dpdk-testpmd"), Need::Tool("stdbuf")];

#[test]
fn send_counts_what_is_thrown_at_it_and_goes_on() {
    counts_all_and_goes_on(&NEEDS, "", "role=server", "2176");
}

// What lies in one buffer of the peer's is longer than one of ours.
#[test]
fn a_peer_with_longer_buffers_writes_into_nothing_of_a_sender_that_serves() {
    counts_all_and_goes_on(&NEEDS, ",server", "role=client,bsize=8192", "8320");
}

#[test]
fn a_peer_that_writes_into_our_buffers_writes_into_nothing_else() {
    let needs = [&NEEDS[..], &[Need::Hugepages]].concat();
    counts_all_and_goes_on(&needs, ",zero-copy", "role=server", "2176");
}

/// Nothing that is thrown at a sender goes uncounted, and its pool and what it sends elsewhere are as they would be without.
fn counts_all_and_goes_on(needs: &[Need], ours: &'static str, theirs: &'static str, buffer: &'static str) {
    let Some(lab) = require(needs) else { return };
    let ends = Ends { ours, theirs, buffer };
    // The run's id is its own secret: of errors about probes of every id exactly one is about ours.
    let mut frames: Vec<Frame> = (0..=255).map(|run| icmp_error(&probe(run, 64))).collect();
    frames.extend([
        udp_beyond_the_frame(1),
        udp_beyond_the_frame(30_000),
        udp_beyond_the_packet(),
    ]);
    frames.extend(truncated());
    // All of them fit the ring of the memif, so that testpmd drops none.
    frames.extend(garbage(600));
    // In several buffers, damaged in the last of them.
    let mut chained = probe(0, 9000);
    chained[8990] ^= 1;
    frames.push(chained);
    let (mut wanted, mut corrupt) = (BTreeMap::new(), 0);
    let addresses = [wire::Ends::of(&spec(0, 64))];
    for frame in &frames {
        match wire::classify(frame, 0, Verify::Checksum) {
            Class::Corrupt => match wire::whose_damage(frame, 0, &addresses) {
                None => corrupt += 1,
                Some(kind) => *wanted.entry(kind.name().to_owned()).or_default() += 1,
            },
            Class::Foreign(kind) => *wanted.entry(kind.name().to_owned()).or_default() += 1,
            Class::Probe(_) => panic!("no frame here is whole"),
        }
    }
    // In more than any probe has. Where nothing is copied, the driver gives a chain the length of its first buffer: there it is
    // only that nothing is written over.
    if ends.ours != ",zero-copy" {
        frames.push(garbage(1)[0].repeat(20_000)[..20_000].to_vec());
        wanted.insert("oversized".to_owned(), 1);
    }
    let run = thrown_at_send(&lab, &ends, &frames);
    assert!(corrupt > 0 && wanted["damaged"] > 0 && wanted["icmp_error_ours"] == 1);
    assert_eq!(
        counts(&run.json()["ledger"]["arrived"]["foreign"]),
        wanted,
        "{run}"
    );
    assert_eq!(run.number("corrupt"), corrupt, "{run}");
    assert_eq!(run.number("pool.leaked"), 0, "{run}");
    assert_eq!(
        run.number("received"),
        run.number("ports.1.tx_packets"),
        "the ring goes on: {run}"
    );
    assert_eq!(run.number("duplicate") + run.number("late"), 0, "{run}");
}

#[test]
fn an_error_of_the_kernel_about_our_probe_is_counted_as_such() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let (near, far) = (lab.namespace("near"), lab.namespace("far"));
    near.veth("n0", &far, "f0");
    near.up("n0", &[]);
    far.up("f0", &["10.99.0.2/24"]);
    near.wait_for_link("n0");
    let flags = [
        "--to",
        "10.99.0.2:9999",
        "--from",
        "10.99.0.1",
        "--rate",
        "1kpps",
        "--count",
        "500",
    ];
    let common = [
        "send",
        "--json",
        "--quiet",
        "--port",
        "packet:n0",
        "--drain",
        "200ms",
    ];
    let run = lab.dropless(&[&common[..], &flags].concat()).within(&near).run();
    assert_eq!(run.code, Some(2), "nothing came back: {run}");
    assert_eq!((run.number("sent"), run.number("received")), (500, 0), "{run}");
    assert!(run.number("ledger.arrived.foreign.icmp_error_ours") > 0, "{run}");
    assert_eq!(run.number("pool.leaked"), 0, "{run}");
}
