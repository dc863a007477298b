//! `dropless capture`: what came is in the file, byte for byte and in order, or is counted.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::wire::{
    Wire, assert_balance, assert_invalid, assert_refused, has_note, interrupted, note,
};
use crate::support::{Finished, Lab, Namespace, Need, Running, require, until};

const NEEDS: [Need; 1] = [Need::Namespaces];
const READ: [Need; 3] = [Need::Namespaces, Need::Tool("tshark"), Need::Tool("capinfos")];

/// A running capture within a namespace, that takes packets.
pub fn capture(lab: &Lab, namespace: &Namespace, arguments: &[&str]) -> Running {
    let mut running = lab
        .dropless(&[&["capture", "--json"][..], arguments].concat())
        .within(namespace)
        .spawn();
    running.wait_for("capturing from", Duration::from_secs(30));
    running.until_begun(Duration::from_secs(30));
    running
}

/// Probes from the near end that nobody returns.
pub fn send(lab: &Lab, wire: &Wire, arguments: &[&str]) -> Finished {
    let to = ["--tx-only", "--to-mac", &wire.far.mac("far0")];
    wire.send(lab, "packet", &[&to[..], arguments].concat()).run()
}

/// received = captured + named drops, and what each consumer was offered it took or lost.
pub fn assert_balanced(run: &Finished) {
    assert_balance(&run.json()["ledger"], run);
    assert_eq!(run.number("ledger.left"), run.number("captured"), "{run}");
    for consumer in run.json()["consumers"].as_array().expect("consumers") {
        let number = |name: &str| consumer[name].as_u64().expect("a count");
        assert_eq!(
            number("offered"),
            number("taken") + number("lost") + number("left"),
            "{run}"
        );
    }
}

/// What tshark says of each packet of a file: the fields of these names.
fn tshark(file: &str, filter: &str, names: &[&str]) -> std::process::Output {
    let mut arguments = vec!["-r", file, "-Y", filter, "-T", "fields"];
    arguments.extend(names.iter().flat_map(|name| ["-e", name]));
    let tshark = std::process::Command::new("tshark").args(&arguments).output();
    tshark.expect("tshark")
}

/// The same of a file without a fault, by lines.
pub fn fields(file: &str, filter: &str, names: &[&str]) -> Vec<String> {
    let output = tshark(file, filter, names);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}

pub fn path(lab: &Lab, name: &str) -> String {
    lab.path(name).display().to_string()
}

#[test]
fn what_was_sent_is_in_the_file_byte_for_byte_and_in_order() {
    let Some(lab) = require(&READ) else { return };
    let wire = Wire::between(&lab, 1);
    let file = path(&lab, "a.pcapng");
    let running = capture(&lab, &wire.far, &["--port", "packet:far0", "--to", &file]);
    let sent = send(
        &lab,
        &wire,
        &["--size", "64-1518", "--rate", "20kpps", "--count", "5820"],
    );
    assert_eq!(sent.number("sent"), 5820, "{sent}");
    let run = interrupted(running);
    assert_balanced(&run);
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(run.number("captured"), 5820, "{run}");
    let lines = fields(
        &file,
        "udp.dstport==7",
        &["frame.len", "udp.checksum.status", "frame.time_delta"],
    );
    assert_eq!(lines.len(), 5820);
    for line in &lines {
        let mut parts = line.split('\t').skip(2);
        assert!(
            parts.next().is_some_and(|delta| !delta.starts_with('-')),
            "{line}"
        );
    }
    // Every size in its turn, without the FCS.
    let lens: Vec<usize> = lines
        .iter()
        .filter_map(|line| line.split('\t').next()?.parse().ok())
        .collect();
    let mut sizes = lens.clone();
    sizes.sort_unstable();
    sizes.dedup();
    assert!(sizes.into_iter().eq(60..=1514), "every size");
    // The whole payload is what was sent: its checksum, written by the sender, holds.
    let sums = ["-o", "udp.check_checksum:TRUE"];
    let bad = std::process::Command::new("tshark")
        .args([&["-r", &file, "-Y", "udp.checksum.status==0"][..], &sums].concat())
        .output()
        .expect("tshark");
    assert_eq!(String::from_utf8_lossy(&bad.stdout), "");
    let about = std::process::Command::new("capinfos")
        .args(["-o", &file])
        .output()
        .expect("capinfos");
    assert!(
        String::from_utf8_lossy(&about.stdout).contains("True"),
        "{about:?}"
    );
}

/// `AF_PACKET` cuts what is longer than its ring was made for, and its driver hands it over as whole.
#[test]
fn packets_that_a_port_cut_are_told_of() {
    let Some(lab) = require(&READ) else { return };
    let wire = Wire::between(&lab, 1);
    let file = path(&lab, "a.pcapng");
    let running = capture(&lab, &wire.far, &["--port", "packet:far0", "--to", &file]);
    for (end, interface) in [(&wire.near, "near0"), (&wire.far, "far0")] {
        end.ip(&["link", "set", interface, "mtu", "3000"]);
    }
    wire.near.ip(&["addr", "add", "198.18.9.1/24", "dev", "near0"]);
    let neighbour = [
        "neigh",
        "add",
        "198.18.9.2",
        "lladdr",
        "02:00:00:00:00:09",
        "dev",
        "near0",
    ];
    wire.near.ip(&neighbour);
    // With its headers a packet has 42 bytes more: the first just fits.
    for payload in [1939, 1940, 2900] {
        let ping = format!("ping -M do -s {payload} -c 20 -i 0.01 -W 0.1 198.18.9.2 || true");
        wire.near.run("bash", &["-c", &ping]);
    }
    let run = interrupted(running);
    assert_eq!(run.number("captured"), 60, "{run}");
    let json = run.json();
    let told = note(&json, "packets_cut");
    assert!(told.is_some_and(|text| text.starts_with("40 packets")), "{run}");
}

/// What the file says of its interfaces is what the ledger says.
#[test]
fn two_ports_are_two_interfaces_of_one_file() {
    let Some(lab) = require(&READ) else { return };
    let wire = Wire::between(&lab, 1);
    wire.near.veth("near1", &wire.far, "far1");
    wire.near.without_ipv6("near1");
    wire.far.without_ipv6("far1");
    wire.near.up("near1", &[]);
    wire.far.up("far1", &[]);
    wire.near.wait_for_link("near1");
    let file = path(&lab, "two.pcapng");
    let ports = ["--port", "packet:far0", "--port", "packet:far1", "--to", &file];
    let running = capture(&lab, &wire.far, &ports);
    let sent = send(
        &lab,
        &wire,
        &["--port", "packet:near1", "--rate", "10kpps", "--count", "4000"],
    );
    assert_eq!(sent.number("sent"), 4000, "{sent}");
    let run = interrupted(running);
    assert_balanced(&run);
    assert_eq!(run.number("captured"), 4000, "{run}");
    let of = |interface: &str| {
        let filter = format!("frame.interface_id=={interface}");
        fields(&file, &filter, &["frame.number"]).len()
    };
    assert_eq!((of("0"), of("1")), (2000, 2000));
}

#[test]
fn as_many_are_captured_as_were_asked_for() {
    let Some(lab) = require(&READ) else { return };
    let wire = Wire::between(&lab, 1);
    let file = path(&lab, "count.pcapng");
    let arguments = [
        "--port",
        "packet:far0",
        "--to",
        &file,
        "--count",
        "100",
        "--snaplen",
        "50",
    ];
    let running = capture(&lab, &wire.far, &arguments);
    let _ = send(&lab, &wire, &["--rate", "20kpps", "--count", "3000"]);
    let run = running.wait(Duration::from_secs(30));
    assert_balanced(&run);
    assert_eq!((run.code, run.number("captured")), (Some(0), 100), "{run}");
    let lines = fields(&file, "frame", &["frame.cap_len", "frame.len"]);
    assert!(
        lines.len() == 100 && lines.iter().all(|line| line == "50\t60"),
        "{lines:?}"
    );
}

#[test]
fn files_take_turns_and_the_newest_are_kept() {
    let Some(lab) = require(&READ) else { return };
    let wire = Wire::between(&lab, 1);
    let file = path(&lab, "turns.pcapng");
    let arguments = [
        "--port",
        "packet:far0",
        "--to",
        &file,
        "--file-size",
        "2MiB",
        "--files",
        "2",
    ];
    let running = capture(&lab, &wire.far, &arguments);
    let _ = send(
        &lab,
        &wire,
        &["--size", "1518", "--rate", "20kpps", "--count", "8000"],
    );
    let run = interrupted(running);
    assert_balanced(&run);
    assert_eq!(run.number("files.packets"), 8000, "{run}");
    let written: Vec<PathBuf> = std::fs::read_dir(lab.path(""))
        .expect("the lab")
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pcapng"))
        .collect();
    assert!(
        run.number("files.files") > 4 && written.len() == 2,
        "{written:?} {run}"
    );
    let packets: usize = written
        .iter()
        .map(|file| fields(&file.display().to_string(), "frame", &["frame.number"]).len())
        .sum();
    assert!(packets > 0 && packets < 8000);
    // Each ends with what had been received by then.
    let mut written = written;
    written.sort();
    let said: Vec<Vec<u64>> = written.iter().map(|file| ends(file)).collect();
    assert!(said.iter().all(|said| said.len() == 1), "{said:?}");
    assert!(
        said[0][0] > 0 && said[0][0] <= said[1][0] && said[1][0] == run.number("received"),
        "{said:?} {run}"
    );
    for file in &written {
        let read = lab
            .dropless(&["read", &file.display().to_string(), "--top", "1"])
            .run();
        assert!(read.code == Some(0) && read.stderr.is_empty(), "{read}");
    }
}

/// What came more than a moment before is on the disk, whatever happens to the program.
#[test]
fn a_killed_capture_leaves_what_came() {
    let Some(lab) = require(&READ) else { return };
    let wire = Wire::between(&lab, 1);
    let file = path(&lab, "killed.pcapng");
    let running = capture(&lab, &wire.far, &["--port", "packet:far0", "--to", &file]);
    let _ = send(&lab, &wire, &["--rate", "10kpps", "--count", "1000"]);
    // While it is being written the last packet may not be whole.
    let so_far = || {
        let output = tshark(&file, "udp.dstport==7", &["frame.number"]);
        String::from_utf8_lossy(&output.stdout).lines().count()
    };
    assert!(
        until(Duration::from_secs(20), || so_far() == 1000),
        "{}",
        so_far()
    );
    running.signal(Signal::SIGKILL);
    let _ = running.wait(Duration::from_secs(30));
    assert_eq!(fields(&file, "udp.dstport==7", &["frame.number"]).len(), 1000);
    assert_eq!(ends(&PathBuf::from(&file)).len(), 0);
    // It is told, but hides nothing and is no error.
    let read = lab.dropless(&["read", &file]).run();
    assert_eq!(read.code, Some(0), "{read}");
    assert!(read.stdout.matches(".7: UDP").count() == 1000, "{read}");
    assert!(
        read.stderr.contains("has no end of a capture") && read.stderr.lines().count() == 1,
        "{read}"
    );
}

/// The packets that each interface received, as a file says at its end (`isb_ifrecv`).
fn ends(file: &std::path::Path) -> Vec<u64> {
    let bytes = std::fs::read(file).expect("a file");
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (mut at, mut all) = (0, Vec::new());
    while at < bytes.len() {
        let end = at + word(at + 4) as usize;
        if word(at) == 5 {
            let mut option = at + 20;
            while word(option) & 0xFFFF != 4 {
                option += 4 + (word(option) >> 16) as usize;
            }
            assert!(option < end, "it says how many it received");
            all.push(u64::from(word(option + 4)) | u64::from(word(option + 8)) << 32);
        }
        at = end;
    }
    all
}

/// The reader ends when it has what it wants, and the capture with it.
#[test]
fn a_stream_goes_into_tshark() {
    let Some(lab) = require(&READ) else { return };
    let wire = Wire::between(&lab, 1);
    let program = env!("CARGO_BIN_EXE_dropless");
    let script = format!(
        "{program} capture --port packet:far0 --stdout --no-huge --no-doctor --runs {} | tshark -l -n -i - -c 500 -T fields -e udp.dstport -e frame.protocols -e eth.src",
        lab.path("runs").display()
    );
    let mut running = wire.far.spawn("sh", &["-c", &script]);
    running.wait_for("capturing from", Duration::from_secs(30));
    let _ = send(&lab, &wire, &["--rate", "5kpps", "--count", "2000"]);
    let ended = running.wait(Duration::from_secs(30));
    assert_eq!(
        ended
            .stdout
            .lines()
            .filter(|line| line.starts_with("7\t"))
            .count(),
        500,
        "{ended}"
    );
    assert!(ended.stderr.contains("VALID: "), "{ended}");
}

#[test]
fn a_capture_of_nothing_is_no_capture() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let file = path(&lab, "empty.pcapng");
    let arguments = [
        "capture",
        "--json",
        "--port",
        "packet:far0",
        "--to",
        &file,
        "--duration",
        "300ms",
    ];
    let run = lab.dropless(&arguments).within(&wire.far).run();
    assert_invalid(&run, "no packet was received");
}

#[test]
fn wrong_uses_are_one_line() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let refused = |arguments: &[&str], words: &[&str]| {
        let all = [&["capture", "--port", "packet:far0"][..], arguments].concat();
        assert_refused(&lab.dropless(&all).within(&wire.far).run(), words);
    };
    refused(
        &["--to", "/nonexistent/a.pcapng"],
        &["/nonexistent/a.pcapng", "No such file"],
    );
    refused(&["--snaplen", "3"], &["--snaplen 3", "14"]);
    refused(&["--to", "a.pcapng", "--files", "3"], &["--files", "--file-size"]);
    let ring_of_none = ["--to", "a.pcapng", "--file-time", "1s", "--files", "0"];
    refused(&ring_of_none, &["--files 0 keeps none"]);
    refused(&["--direction", "in"], &["--direction", "--attach"]);
    refused(
        &["--to", "a.pcapng", "--file-size", "10k"],
        &["--file-size of 10000 bytes", "use 2MiB"],
    );
    refused(
        &["--port", "kernel:198.18.0.9"],
        &["kernel:198.18.0.9", "packet:"],
    );
    let link = lab.path("link.pcapng");
    std::os::unix::fs::symlink("/etc/hostname", &link).expect("a link");
    refused(&["--to", &link.display().to_string()], &["link.pcapng"]);
}

/// What comes by queues that the interface is given later no `xdp:` port takes, which the run says at its end.
#[test]
fn queues_that_come_later_are_told() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 2);
    let one = ["rx", "1", "tx", "1"];
    wire.near.run("ethtool", &[&["-L", "near0"][..], &one].concat());
    wire.far.run("ethtool", &[&["-L", "far0"][..], &one].concat());
    let file = path(&lab, "one.pcapng");
    let running = capture(&lab, &wire.far, &["--port", "xdp:far0", "--to", &file]);
    wire.far.run("ethtool", &["-L", "far0", "rx", "2"]);
    let run = interrupted(running);
    assert!(has_note(&run.json(), "queues_raised"), "{run}");
}

/// What arrives at an `AF_XDP` port no other program gets, which the run says; `packet` leaves it there, and its queues are
/// given their part by the kernel, which needs no RSS.
#[test]
fn who_takes_traffic_away_says_so() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let says = |port: &str, queues: &str| {
        let file = path(&lab, "said.pcapng");
        let arguments = ["--port", port, "--queues", queues, "--to", &file];
        let running = capture(&lab, &wire.far, &arguments);
        let sent = send(
            &lab,
            &wire,
            &["--flows", "20", "--rate", "1kpps", "--count", "100"],
        );
        assert_eq!(sent.number("sent"), 100, "{sent}");
        let run = interrupted(running);
        assert_eq!(run.number("captured"), 100, "{run}");
        run
    };
    let (xdp, packet) = (says("xdp:far0", "1"), says("packet:far0", "2"));
    assert!(
        xdp.stderr
            .contains("note: port xdp:far0 takes what arrives on its queues of far0 away from the kernel"),
        "{xdp}"
    );
    assert!(!packet.stderr.contains("away from the kernel"), "{packet}");
    assert!(!has_note(&packet.json(), "driver_differs"), "{packet}");
}
