//! `dropless read`: what `tcpdump` and `tshark` say of a file is what this says, and a ring is read live.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::pcap_file::{MICROSECONDS, Made};
use crate::support::wire::{FAR_V4, FAR_V6, Wire, assert_refused, interrupted};
use crate::support::{Finished, Lab, Need, Running, require, until};

pub const LIMIT: Duration = Duration::from_secs(30);
const TOOLS: [Need; 5] = [
    Need::Namespaces,
    Need::Tool("tcpdump"),
    Need::Tool("tshark"),
    Need::Tool("editcap"),
    Need::Tool("socat"),
];

/// What a program prints on standard output.
pub fn output(lab: &Lab, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(lab.directory()).output();
    let output = output.expect("starting it");
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

pub fn read(lab: &Lab, arguments: &[&str]) -> Finished {
    lab.dropless(&[&["read"][..], arguments].concat()).run()
}

/// The objects of lines of JSON.
pub fn objects(run: &Finished) -> Vec<Value> {
    let object = |line| serde_json::from_str(line).expect("an object a line");
    run.stdout.lines().map(object).collect()
}

pub fn assert_same_lines(got: &str, wanted: &str) {
    for (got, wanted) in got.lines().zip(wanted.lines()) {
        assert_eq!(got, wanted);
    }
    assert_eq!(got.lines().count(), wanted.lines().count());
}

/// Traffic of a kernel, as `tcpdump` and `dumpcap` write it at the same time: `us.pcap` and `ng.pcapng`.
fn record(lab: &Lab) -> Wire {
    let wire = Wire::to_kernel(lab);
    wire.near.without_offload("near0");
    wire.near.run(
        "sh",
        &["-c", "echo 0 >/proc/sys/net/ipv6/conf/near0/disable_ipv6"],
    );
    wire.near.up("near0", &["198.18.0.1/24", "2001:2::1/64"]);
    let mut server = wire
        .far
        .spawn("socat", &["-d", "-d", "TCP-LISTEN:7777,fork", "SYSTEM:wc -c"]);
    server.wait_for("listening on", LIMIT);
    // What has extension headers, or is not to be foreseen, stays out.
    let filter = "arp or icmp or tcp or udp or icmp6";
    let file = |name: &str| lab.path(name).display().to_string();
    // By itself it has 32 places of 64 KiB, and drops what comes while it waits for a core.
    let tcpdump = [
        "-i",
        "far0",
        "-B",
        "16384",
        "-U",
        "--immediate-mode",
        "-Z",
        "root",
        "-w",
        &file("us.pcap"),
        filter,
    ];
    let dumpcap = ["-i", "far0", "-f", filter, "-w", &file("ng.pcapng")];
    let mut recording: Vec<Running> = vec![
        wire.far.spawn("tcpdump", &tcpdump),
        wire.far.spawn("dumpcap", &dumpcap),
    ];
    recording[0].wait_for("listening on", LIMIT);
    recording[1].wait_for("File: ", LIMIT);
    wire.near.run("ping", &["-c", "3", "-i", "0.1", FAR_V4]);
    wire.near.run("ping", &["-c", "2", "-i", "0.1", FAR_V6]);
    // Some ports are of protocols that tcpdump decodes; these are not.
    let send = format!(
        "head -c 20000 /dev/zero | socat -t5 - TCP:{FAR_V4}:7777,sourceport=40000; echo hello | socat -u - UDP:{FAR_V4}:9,sourceport=40001; echo hello | socat -u - UDP6:[{FAR_V6}]:9,sourceport=40002"
    );
    wire.near.run("sh", &["-c", &send]);
    // What comes last, and the recorders may not have yet.
    wire.near.run("ping", &["-c", "1", "-s", "333", FAR_V4]);
    for name in ["us.pcap", "ng.pcapng"] {
        assert!(
            until(LIMIT, || read(lab, &[name]).stdout.matches("length 341").count()
                == 2),
            "{name}"
        );
    }
    for recorder in recording {
        recorder.signal(Signal::SIGINT);
        assert_eq!(recorder.wait(LIMIT).code, Some(0));
    }
    wire
}

#[test]
fn files_of_every_tool_are_told_as_tcpdump_tells_them() {
    let Some(lab) = require(&TOOLS) else { return };
    let _wire = record(&lab);
    for (format, name) in [
        ("nsecpcap", "ns.pcap"),
        ("pcap", "back.pcap"),
        ("modpcap", "mod.pcap"),
    ] {
        output(&lab, "editcap", &["-F", format, "ng.pcapng", name]);
    }
    output(
        &lab,
        "editcap",
        &["-s", "60", "-F", "pcapng", "us.pcap", "short.pcapng"],
    );
    output(&lab, "gzip", &["-k", "ng.pcapng"]);
    for name in ["us.pcap", "ns.pcap", "ng.pcapng", "back.pcap", "mod.pcap"] {
        let run = read(&lab, &[name]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run}");
        // As many digits as the file has.
        let is_nano = run
            .stdout
            .split_once(' ')
            .is_some_and(|(time, _)| time.len() == 18);
        let precision = if is_nano { "nano" } else { "micro" };
        let precision = format!("--time-stamp-precision={precision}");
        let wanted = output(&lab, "tcpdump", &["-n", "-S", &precision, "-r", name]);
        assert!(wanted.lines().count() > 20, "{wanted}");
        assert_same_lines(&run.stdout, &wanted);
    }
    assert_eq!(
        read(&lab, &["ng.pcapng.gz"]).stdout,
        read(&lab, &["ng.pcapng"]).stdout
    );
    // The lengths of what was cut are those that it had.
    let lengths = |name: &str| -> Vec<Value> {
        let all = objects(&read(&lab, &["--json", name]));
        all.iter().map(|packet| packet["length"].clone()).collect()
    };
    assert_eq!(lengths("short.pcapng"), lengths("us.pcap"));
    assert_same_as_tshark(&lab);
}

/// Lengths, addresses, ports and numbers of TCP and UDP.
fn assert_same_as_tshark(lab: &Lab) {
    let fields = [
        "frame.len",
        "ip.src",
        "ipv6.dst",
        "tcp.srcport",
        "tcp.seq_raw",
        "tcp.window_size_value",
        "udp.dstport",
    ];
    // An error of ICMP has headers of UDP in it.
    let mut arguments = vec![
        "-r",
        "ng.pcapng",
        "-Y",
        "!icmp && !icmpv6 && !arp",
        "-T",
        "fields",
    ];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let wanted = output(lab, "tshark", &arguments);
    let all = objects(&read(lab, &["ng.pcapng", "--json"]));
    let told = all
        .iter()
        .filter(|packet| packet["protocol"] == 6 || packet["protocol"] == 17);
    let got: Vec<String> = told.map(row).collect();
    assert!(got.len() > 10);
    assert_eq!(got, wanted.lines().collect::<Vec<_>>());
}

/// The fields of one packet as tshark writes them.
fn row(packet: &Value) -> String {
    let (is_v6, is_tcp) = (packet["network"] == "ipv6", packet["protocol"] == 6);
    let cell = |holds: bool, value: &Value| match value {
        Value::String(text) if holds => text.clone(),
        Value::Number(number) if holds => number.to_string(),
        _ => String::new(),
    };
    [
        cell(true, &packet["length"]),
        cell(!is_v6, &packet["source"]),
        cell(is_v6, &packet["destination"]),
        cell(is_tcp, &packet["source_port"]),
        cell(is_tcp, &packet["tcp"]["seq"]),
        cell(is_tcp, &packet["tcp"]["window"]),
        cell(!is_tcp, &packet["destination_port"]),
    ]
    .join("\t")
}

#[test]
fn who_talked_to_whom_adds_up() {
    let Some(lab) = require(&TOOLS) else { return };
    let _wire = record(&lab);
    let packets = objects(&read(&lab, &["us.pcap", "--json"]));
    let bytes = |all: &[Value]| all.iter().filter_map(|one| one["length"].as_u64()).sum::<u64>();
    for max in ["1M", "2"] {
        let run = read(
            &lab,
            &[
                "us.pcap",
                "--connections",
                "--top",
                "1",
                "--json",
                "--flows-max",
                max,
            ],
        );
        assert_eq!(run.code, Some(0), "{run}");
        let mut all = objects(&run);
        let summary = all.pop().expect("a summary");
        assert_eq!(summary["packets"], packets.len(), "{run}");
        assert_eq!(summary["bytes"], bytes(&packets), "{run}");
        let number = |of: &Value, name: &str| of[name].as_u64().expect("a number");
        let connections: Vec<&Value> = all.iter().filter(|line| line["kind"] == "connection").collect();
        let shown: u64 = connections
            .iter()
            .map(|one| number(&one["sent"], "bytes") + number(&one["returned"], "bytes"))
            .sum();
        let forgotten = &summary["forgotten_connections"];
        assert_eq!(
            shown + number(forgotten, "bytes") + number(&summary["not_ip"], "bytes"),
            bytes(&packets),
            "{run}"
        );
        assert_eq!(number(forgotten, "entries") > 0, max == "2", "{run}");
        assert_eq!(
            all.iter().filter(|line| line["kind"] == "talker").count(),
            1,
            "{run}"
        );
        if max == "1M" {
            // The largest is the TCP connection that the near end began.
            let largest = connections[0];
            assert_eq!(
                largest["to"],
                serde_json::json!({"address": FAR_V4, "port": 7777}),
                "{run}"
            );
            for flags in ["flags_sent", "flags_returned"] {
                let seen = largest[flags].as_str().expect("flags");
                assert!(seen.contains('S') && seen.contains('F'), "{run}");
            }
        }
    }
    let run = read(&lab, &["us.pcap", "--connections", "--top", "5"]);
    for word in [
        "addresses",
        "connections",
        FAR_V4,
        &format!("{FAR_V4}.7777"),
        "ICMP6",
        "no IP: ",
    ] {
        assert!(run.stdout.contains(word), "{word}: {run}");
    }
}

/// A stream of another program, until it ends or this is interrupted; what has come is told at once.
#[test]
fn a_stream_is_read_as_it_comes() {
    let Some(lab) = require(&[]) else { return };
    std::fs::write(lab.path("a.pcap"), pcap(3)).expect("a file");
    let mut running = lab.shell("(cat a.pcap; exec sleep 60) | $DROPLESS read - --utc");
    running.wait_for("00:00:02.000000", LIMIT);
    drop(running);
    // An interrupt is the end of a pipe that nobody closes.
    let script =
        "mkfifo pipe; (cat a.pcap; exec sleep 60) >pipe 2>/dev/null & exec $DROPLESS read pipe --utc";
    let mut running = lab.shell(script);
    running.wait_for("00:00:02.000000", LIMIT);
    let run = interrupted(running);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run}");
    // Who looks at the first line wants no more, and hears no complaint.
    std::fs::write(lab.path("long.pcap"), pcap(100_000)).expect("a file");
    let run = lab.shell("$DROPLESS read long.pcap --utc | head -1").wait(LIMIT);
    assert_eq!(
        (run.stdout.lines().count(), run.stderr.as_str()),
        (1, ""),
        "{run}"
    );
}

/// A file of pcap with `count` packets, one a second.
fn pcap(count: u64) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    frame[17] = 46;
    let packets = (0..count).map(|second| Made::whole(second * 1_000_000_000, frame.clone()));
    MICROSECONDS.bytes(&packets.collect::<Vec<_>>())
}

/// Connections have the day, unless the time of day alone is asked for.
#[test]
fn times_of_connections_are_written_as_asked() {
    let Some(lab) = require(&[]) else { return };
    std::fs::write(lab.path("a.pcap"), pcap(1)).expect("a file");
    for (format, has, has_not) in [
        (&[][..], "1970-01-01 00:00:00", "epoch"),
        (&["--time", "date"], "1970-01-01 00:00:00", "epoch"),
        (&["--time", "clock"], "00:00:00", "1970"),
        (&["--time", "epoch"], "0.000000", "00:00:00"),
    ] {
        let run = read(&lab, &[&["a.pcap", "--connections", "--utc"], format].concat());
        assert_eq!(run.code, Some(0), "{run}");
        assert!(run.stdout.contains(has) && !run.stdout.contains(has_not), "{run}");
    }
}

/// What libpcap chooses of a file it chooses here, of every kind of link.
#[test]
fn a_filter_chooses_what_tcpdump_chooses() {
    let Some(lab) = require(&[Need::Tool("tcpdump")]) else {
        return;
    };
    let mut ethernet = pcap(6);
    // Every other frame is UDP to port 53.
    for packet in (0..6).step_by(2) {
        let frame = &mut ethernet[24 + packet * 76 + 16..][..60];
        (frame[23], frame[37]) = (17, 53);
        frame[14] = 0x45;
    }
    // The same without Ethernet: LINKTYPE_RAW.
    let mut raw = ethernet[..20].to_vec();
    raw.extend(101_u32.to_le_bytes());
    for packet in 0..6 {
        let record = &ethernet[24 + packet * 76..][..76];
        raw.extend(&record[..8]);
        raw.extend([46_u32.to_le_bytes(), 46_u32.to_le_bytes()].concat());
        raw.extend(&record[16 + 14..]);
    }
    std::fs::write(lab.path("ethernet.pcap"), &ethernet).expect("a file");
    std::fs::write(lab.path("raw.pcap"), &raw).expect("a file");
    // Two were longer before they were cut.
    let mut cut = ethernet.clone();
    for packet in 0..2 {
        cut[24 + packet * 76 + 12..][..4].copy_from_slice(&1514_u32.to_le_bytes());
    }
    std::fs::write(lab.path("cut.pcap"), &cut).expect("a file");
    for (filter, packets) in [("greater 1000", 2), ("less 60", 4), ("udp and greater 1000", 1)] {
        let wanted = output(&lab, "tcpdump", &["-nS", "-r", "cut.pcap", filter]);
        let run = read(&lab, &["cut.pcap", "--filter", filter]);
        let found = (wanted.lines().count(), run.stdout.lines().count());
        assert_eq!(found, (packets, packets), "{filter}: {run}");
    }
    for name in ["ethernet.pcap", "raw.pcap"] {
        for (filter, packets) in [("udp port 53", 3), ("not udp", 3), ("port 54", 0)] {
            let run = read(&lab, &[name, "--filter", filter]);
            let wanted = output(&lab, "tcpdump", &["-nS", "-r", name, filter]);
            assert_eq!((run.code, wanted.lines().count()), (Some(0), packets), "{run}");
            assert_eq!(run.stdout.lines().count(), packets, "{run}");
        }
        let some = read(&lab, &[name, "-f", "udp", "--count", "2"]);
        assert_eq!(some.stdout.lines().count(), 2, "{some}");
    }
    assert_refused(
        &read(&lab, &["raw.pcap", "--filter", "udp prot 53"]),
        &["--filter", "syntax error", "at `prot 53`"],
    );
    // Words behind a name are names: nothing of the first is printed.
    assert_refused(
        &read(&lab, &["ethernet.pcap", "udp port 53"]),
        &["no file or ring is called udp port 53", "--filter 'udp port 53'"],
    );
    assert_refused(&read(&lab, &["ethernet.pcap", "nowhere"]), &["no file nowhere"]);
    assert_refused(
        &read(&lab, &["ethernet.pcap", "--lossless"]),
        &["--lossless", "leave it out"],
    );
    std::fs::write(lab.path("cut.pcapng"), [0x0a, 0x0d, 0x0d]).expect("a file");
    assert_refused(
        &read(&lab, &["cut.pcapng"]),
        &["cut.pcapng is cut short", "3 of 28 bytes"],
    );
}

#[test]
fn what_cannot_be_read_is_one_line() {
    let Some(lab) = require(&[]) else { return };
    let refused = |arguments: &[&str], words: &[&str]| assert_refused(&read(&lab, arguments), words);
    refused(
        &["nothing"],
        &["no file nothing", "/run/dropless/nothing.ring", "--ring running"],
    );
    refused(&["./nothing"], &["no file or ring ./nothing"]);
    std::fs::write(lab.path("text"), "not a capture at all").expect("a file");
    refused(&["text"], &["text is no pcap or pcapng file", "editcap"]);
    std::fs::write(lab.path("empty"), "").expect("a file");
    refused(&["empty"], &["empty is empty"]);
    refused(&["."], &["is a directory"]);
    refused(&["empty", "--connections"], &["empty is empty"]);
    refused(&["text", "--count", "0"], &["--count 0"]);
    refused(&["text", "--top", "many"], &["--top", "many"]);
    let run = read(&lab, &["text", "--json", "-e"]);
    let words = "'--json' cannot be used with '--ethernet'";
    assert!(run.code == Some(2) && run.stderr.contains(words), "{run}");
    // What was before the damage is told, and then where it is.
    let mut cut = pcap(3);
    cut.truncate(cut.len() - 1);
    std::fs::write(lab.path("cut"), &cut).expect("a file");
    let run = read(&lab, &["cut"]);
    assert_refused_after(
        &run,
        2,
        "cut is cut short: of what begins at byte 176 there are 75 of 76 bytes",
    );
    let mut damaged = pcap(3);
    damaged[24 + 76 + 8..][..4].copy_from_slice(&[0xFF; 4]);
    std::fs::write(lab.path("damaged"), &damaged).expect("a file");
    assert_refused_after(&read(&lab, &["damaged"]), 1, "damaged is damaged at byte 100");
    // A name that would clear the screen.
    let hostile = "\u{1b}[2J.pcap";
    std::fs::write(lab.path(hostile), "x").expect("a file");
    let run = read(&lab, &[hostile]);
    assert!(run.code == Some(2) && !run.stderr.contains('\u{1b}'), "{run}");
}

fn assert_refused_after(run: &Finished, packets: usize, words: &str) {
    assert_eq!(
        (run.code, run.stdout.lines().count()),
        (Some(2), packets),
        "{run}"
    );
    assert!(
        run.stderr.contains(words) && run.stderr.lines().count() == 1,
        "{run}"
    );
}
