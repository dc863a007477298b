//! `capture --stdout` feeds what analyses traffic: each tool counts as many packets as the consumer's account delivered.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::wire::Wire;
use crate::support::{Finished, Lab, Need, Running, require, skip, until};

const PROBES: u64 = 4000;
const LIMIT: Duration = Duration::from_secs(60);

/// A capture at the far end whose stream goes into `tool`.
fn capture_into(lab: &Lab, wire: &Wire, tool: &str) -> Running {
    let script = format!(
        "sh -c 'echo $$ > {}; exec {} capture --port packet:far0 --stdout --no-huge --no-doctor --runs {}' | {tool}",
        lab.path("capture.pid").display(),
        env!("CARGO_BIN_EXE_dropless"),
        lab.path("captures").display()
    );
    let mut running = wire.far.spawn("sh", &["-c", &script]);
    running.wait_for("capturing from", LIMIT);
    running
}

/// Ends the capture in order, and waits for the tool that its stream goes into.
fn ended(lab: &Lab, running: Running) -> Finished {
    let id = std::fs::read_to_string(lab.path("capture.pid")).expect("the id of the process");
    let id = Pid::from_raw(id.trim().parse().expect("a number"));
    kill(id, Signal::SIGINT).expect("signalling");
    running.wait(LIMIT)
}

/// What the ledger says that went out of standard output.
fn delivered(lab: &Lab) -> u64 {
    taken(lab, "standard output")
}

/// What the ledger says that a lossless consumer took: all that it was offered.
fn taken(lab: &Lab, name: &str) -> u64 {
    let mut runs = std::fs::read_dir(lab.path("captures")).expect("the captures");
    let run = runs.next().expect("a run").expect("a run directory").path();
    let summary = std::fs::read_to_string(run.join("summary.json")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    let consumer = &summary["consumers"][0];
    // That of another process has its number behind.
    let found = consumer["name"].as_str().unwrap_or_default();
    assert!(found.starts_with(name), "{found}");
    assert_eq!(
        (&consumer["taken"], &consumer["lost"], &consumer["left"]),
        (&consumer["offered"], &0.into(), &0.into())
    );
    consumer["taken"].as_u64().expect("a count")
}

/// Probes of 50 flows go through a capture into `tool`. Returns what it said, and how many packets it was delivered.
fn probes_into(lab: &Lab, tool: &str) -> (Finished, u64) {
    let wire = Wire::between(lab, 1);
    let running = capture_into(lab, &wire, tool);
    send_probes(lab, &wire);
    let ended = ended(lab, running);
    let delivered = delivered(lab);
    assert!(delivered > 0, "{ended}");
    (ended, delivered)
}

/// Probes of 50 flows, which nobody returns.
fn send_probes(lab: &Lab, wire: &Wire) {
    let far = wire.far.mac("far0");
    let probes = PROBES.to_string();
    let sent = wire.send(
        lab,
        "packet",
        &[
            "--tx-only",
            "--to-mac",
            &far,
            "--flows",
            "50",
            "--rate",
            "10kpps",
            "--count",
            &probes,
        ],
    );
    assert_eq!(sent.run().number("sent"), PROBES);
}

/// The first number after these words.
fn number_after(text: &str, words: &str) -> u64 {
    let rest = text.split_once(words).map_or("", |(_, rest)| rest);
    let digits = rest.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let end = digits.find(|letter: char| !letter.is_ascii_digit());
    let number = digits[..end.unwrap_or(digits.len())].parse();
    number.unwrap_or_else(|_| panic!("no number after {words:?} in {text}"))
}

#[test]
fn tcpdump_prints_what_was_delivered() {
    let needs = [Need::Namespaces, Need::Tool("tcpdump")];
    let Some(lab) = require(&needs) else { return };
    let (ended, delivered) = probes_into(&lab, "tcpdump -n -r -");
    assert_eq!(ended.stdout.lines().count() as u64, delivered, "{ended}");
}

#[test]
fn softflowd_counts_what_was_delivered() {
    let needs = [Need::Namespaces, Need::Tool("softflowd")];
    let Some(lab) = require(&needs) else { return };
    // Its collector is nobody: what it exports is told by its own statistics.
    let places = format!("-p {0}.pid -c {0}.ctl", lab.path("softflowd").display());
    let tool = format!("softflowd -d -v 5 -n 127.0.0.1:9995 {places} -r /dev/stdin");
    let (ended, delivered) = probes_into(&lab, &tool);
    let udp = ended.stdout.split_once("udp (17):").map_or("", |(_, rest)| rest);
    let packets = udp.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    assert_eq!(packets, Some(delivered), "{ended}");
    assert_eq!(number_after(&ended.stdout, "flushed ="), 50, "{ended}");
}

#[test]
fn argus_counts_what_was_delivered() {
    let needs = [Need::Namespaces, Need::Tool("argus"), Need::Tool("ra")];
    let Some(lab) = require(&needs) else { return };
    let records = lab.path("argus.out").display().to_string();
    let (ended, delivered) = probes_into(&lab, &format!("argus -X -r - -w {records}"));
    let ra = std::process::Command::new("ra")
        .args(["-X", "-n", "-s", "pkts", "-r", &records, "-", "udp"])
        .output()
        .expect("ra");
    let counts = String::from_utf8_lossy(&ra.stdout).into_owned();
    let counts: Vec<u64> = counts
        .lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect();
    assert_eq!(counts.iter().sum::<u64>(), delivered, "{ended} {counts:?}");
}

/// It looks at connections of TCP only.
#[test]
fn p0f_sees_the_connections() {
    let needs = [Need::Namespaces, Need::Tool("p0f"), Need::Tool("socat")];
    let Some(lab) = require(&needs) else { return };
    let wire = Wire::to_kernel(&lab);
    wire.near.without_offload("near0");
    wire.near.up("near0", &["198.18.0.1/24"]);
    let mut server = wire
        .far
        .spawn("socat", &["-d", "-d", "TCP4-LISTEN:8080,fork,reuseaddr", "PIPE"]);
    server.wait_for("listening on", LIMIT);
    let running = capture_into(&lab, &wire, "p0f -r /dev/stdin");
    for _ in 0..3 {
        let said = wire
            .near
            .run("sh", &["-c", "echo hello | socat -t 5 - TCP4:198.18.0.2:8080"]);
        assert_eq!(said, "hello\n");
    }
    let ended = ended(&lab, running);
    let seen = number_after(&ended.stdout, "Processed");
    assert!(delivered(&lab) >= seen && seen >= 3 * 6, "{ended}");
    assert_eq!(
        ended.stdout.matches("mod=syn|").count() + ended.stdout.matches("(syn) ]-").count(),
        3,
        "{ended}"
    );
}

/// Suricata 7 of Debian 13, in a root directory of its own.
#[test]
fn suricata_counts_what_was_delivered() {
    let needs = [Need::Namespaces, Need::Tool("mmdebstrap"), Need::Tool("unshare")];
    let Some(lab) = require(&needs) else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/debian13.sh");
    let made = std::process::Command::new(script)
        .output()
        .expect("lab/debian13.sh");
    if !made.status.success() {
        let why = String::from_utf8_lossy(&made.stderr).into_owned();
        return skip(why.lines().last().unwrap_or("lab/debian13.sh failed"));
    }
    let root = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let rule = "alert udp any any -> any 7 (msg:\"a probe\"; sid:1;)\n";
    std::fs::write(lab.path("probe.rules"), rule).expect("a rule");
    let tool = format!(
        "unshare -m sh -c 'mount --bind /proc {root}/proc && mount --bind /dev {root}/dev && mount --bind {} {root}/mnt && \
         exec chroot {root} suricata -S /mnt/probe.rules -l /mnt -k none --pidfile /mnt/pid -r /dev/stdin'",
        lab.directory().display()
    );
    let (ended, delivered) = probes_into(&lab, &tool);
    assert_eq!(number_after(&ended.stdout, "read 1 file,"), delivered, "{ended}");
    let stats = std::fs::read_to_string(lab.path("stats.log")).expect("stats.log");
    // The last table is that of the end.
    let stats = stats.rsplit("\nDate: ").next().unwrap_or_default();
    let of = |name: &str| {
        let line = stats.lines().find(|line| line.starts_with(name));
        number_after(line.unwrap_or_else(|| panic!("no {name} in {stats}")), "Total")
    };
    assert_eq!((of("decoder.pkts"), of("decoder.udp")), (delivered, delivered));
    // A rule that asks for addresses and ports alone speaks once a flow.
    assert_eq!((of("flow.udp"), of("detect.alert ")), (50, 50));
}

/// What `make -C contrib` makes of `name`, in the lab.
fn make(lab: &Lab, name: &str) -> String {
    let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib");
    let made = std::process::Command::new("make")
        .arg("-C")
        .arg(contrib)
        .arg(format!("OUT={}", lab.directory().display()))
        .arg(lab.path(name))
        .output()
        .expect("make");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    lab.path(name).display().to_string()
}

/// A capture with a ring that `readers` join, until nothing has come for a while; what they said.
fn ring_into(lab: &Lab, readers: &[(&str, &[&str])]) -> Vec<Finished> {
    let wire = Wire::between(lab, 1);
    let ring = lab.path("a.ring").display().to_string();
    let captures = lab.path("captures").display().to_string();
    let arguments = ["capture", "--port", "packet:far0", "--ring", &ring];
    let ends = ["--idle-exit", "2s", "--runs", &captures];
    let mut capture = lab
        .dropless(&[&arguments[..], &ends].concat())
        .within(&wire.far)
        .spawn();
    capture.wait_for("capturing from", LIMIT);
    let start = |(program, arguments): &(&str, &[&str])| wire.far.spawn(program, arguments);
    let readers: Vec<Running> = readers.iter().map(start).collect();
    for reader in &readers {
        let maps = format!("/proc/{}/maps", reader.id());
        let has_ring = || std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("dropless-ring"));
        assert!(until(LIMIT, has_ring), "it never joined: {reader:?}");
    }
    send_probes(lab, &wire);
    let said = readers.into_iter().map(|reader| reader.wait(LIMIT)).collect();
    let _ = capture.wait(LIMIT);
    said
}

/// The example in C, made as its page says, reads the ring of a capture.
#[test]
fn a_reader_in_c_counts_what_was_delivered() {
    let needs = [Need::Namespaces, Need::Tool("make"), Need::Tool("cc")];
    let Some(lab) = require(&needs) else { return };
    let count = make(&lab, "count");
    let ring = lab.path("a.ring").display().to_string();
    let counted = ring_into(&lab, &[(&count, &[&ring])]);
    let packets = number_after(&counted[0].stdout, "packets");
    assert!(packets > 0 && packets == taken(&lab, "count"), "{}", counted[0]);
}

/// Two engines of libdaq share the ring of a capture: each packet is one's or the other's.
#[test]
fn engines_share_a_capture() {
    let headers = Need::File("/usr/include/daq_api.h");
    let needs = [Need::Namespaces, Need::Tool("make"), Need::Tool("cc"), headers];
    let Some(lab) = require(&needs) else { return };
    make(&lab, "daq_dropless.so");
    let drive = lab.path("drive").display().to_string();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ring/tests/c/drive.c");
    let compiled = std::process::Command::new("cc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-o", &drive])
        .arg(source)
        .arg("-ldaq")
        .output()
        .expect("cc");
    assert!(compiled.status.success(), "{compiled:?}");
    let directory = lab.directory().display().to_string();
    let ring = lab.path("a.ring").display().to_string();
    let arguments = ["instance=1/2", "instance=2/2"].map(|instance| [&directory[..], &ring, instance]);
    let engines = arguments.each_ref().map(|arguments| (&drive[..], &arguments[..]));
    let said = ring_into(&lab, &engines);
    let handed = |engine: &Finished| {
        let packets = engine.stdout.lines().filter(|line| line.starts_with("packet "));
        packets.map(str::to_owned).collect::<Vec<String>>()
    };
    let (first, second) = (handed(&said[0]), handed(&said[1]));
    assert!(
        !first.is_empty() && !second.is_empty(),
        "{} {}",
        first.len(),
        second.len()
    );
    assert_eq!((first.len() + second.len()) as u64, taken(&lab, "daq "));
    // Probes differ, so their sums do; all lie in the ring.
    let mut all = [first, second].concat();
    assert!(all.iter().all(|packet| packet.ends_with(" 1")));
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "none was handed out twice");
}
