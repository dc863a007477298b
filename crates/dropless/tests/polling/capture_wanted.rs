//! `dropless capture` alone, and what it leaves out: by filter, by sample, on one core and on several.

use std::collections::BTreeMap;

use crate::capture::{assert_balanced, capture, fields, path, send};
use crate::support::pcap_file::{PLAIN, frames};
use crate::support::wire::{Wire, assert_invalid, assert_refused, charged, has_note, interrupted};
use crate::support::{Finished, Need, require};

const READ: [Need; 2] = [Need::Namespaces, Need::Tool("tshark")];

/// What a place was charged, by the queues.
fn of_queues(run: &Finished, place: &str) -> u64 {
    let queues = run.json()["queues"].clone();
    let queues = queues.as_array().expect("queues");
    queues
        .iter()
        .filter_map(|queue| queue["places"][place].as_u64())
        .sum()
}

/// No interface, no hugepages, no rights: frames come all the same.
#[test]
fn alone_it_captures_what_a_generator_sends() {
    let Some(lab) = require(&[Need::Tool("tshark")]) else {
        return;
    };
    let file = path(&lab, "alone.pcapng");
    let arguments = ["capture", "--json", "--to", &file, "--count", "3000"];
    let run = lab.dropless(&arguments).run();
    assert_balanced(&run);
    assert_eq!((run.code, run.number("captured")), (Some(0), 3000), "{run}");
    assert_eq!(run.number("generated"), run.number("received"), "{run}");
    assert_eq!(run.json()["stamped_by"]["ring"], "tsc", "{run}");
    assert!(run.stderr.contains("a generator in this process"), "{run}");
    let lines = fields(&file, "udp.dstport==7", &["frame.len", "udp.srcport"]);
    assert_eq!(lines.len(), 3000);
    let flows: BTreeMap<_, u32> = lines.iter().fold(BTreeMap::new(), |mut flows, line| {
        *flows.entry(line.split('\t').nth(1)).or_default() += 1;
        flows
    });
    assert_eq!(flows.len(), 64, "{flows:?}");
}

/// A null port says how long its frames are, and looks at no buffer: there must be one for all of them.
#[test]
fn long_frames_of_a_null_port_lie_in_their_buffers() {
    let Some(lab) = require(&[Need::Tool("tshark")]) else {
        return;
    };
    for size in ["9000", "16384"] {
        let (file, port) = (path(&lab, size), format!("null,size={size}"));
        let arguments = [
            "capture", "--json", "--port", &port, "--to", &file, "--count", "50",
        ];
        let run = lab.dropless(&arguments).run();
        assert_balanced(&run);
        assert_eq!((run.code, run.number("captured")), (Some(0), 50), "{run}");
        assert_eq!(fields(&file, "frame", &["frame.len"]), [size; 50]);
        let arguments = ["reflect", "--json", "--port", &port, "--duration", "200ms"];
        let run = lab.dropless(&arguments).run();
        assert!(run.code == Some(0) && run.number("returned") > 0, "{run}");
    }
}

/// Beside a real port, whose packets are not the generator's.
#[test]
fn a_generator_and_an_interface_go_into_one_file() {
    let Some(lab) = require(&READ) else { return };
    let wire = Wire::between(&lab, 1);
    let file = path(&lab, "mixed.pcapng");
    let arguments = ["--port", "ring", "--port", "packet:far0", "--to", &file];
    let running = capture(&lab, &wire.far, &arguments);
    let sent = send(
        &lab,
        &wire,
        &["--rate", "1kpps", "--count", "100", "--backlog", "100"],
    );
    assert_eq!(sent.number("sent"), 100, "{sent}");
    let run = interrupted(running);
    assert_balanced(&run);
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(run.number("generated") + 100, run.number("captured"), "{run}");
    assert_eq!(
        fields(&file, "frame.interface_id==1", &["frame.number"]).len(),
        100
    );
}

#[test]
fn the_generator_goes_into_a_pipe() {
    let Some(lab) = require(&[Need::Tool("tshark")]) else {
        return;
    };
    let script = "$DROPLESS capture --stdout --no-doctor --no-huge | tshark -l -n -i - -c 100 -T fields -e udp.dstport";
    let ended = lab.shell(script).wait(std::time::Duration::from_secs(60));
    assert_eq!(
        ended.stdout.lines().filter(|line| *line == "7").count(),
        100,
        "{ended}"
    );
}

/// On one core and on two the same: what passes is in the file, the rest has its place, of the ledger and of its queue.
#[test]
fn what_the_filter_refuses_is_counted() {
    let Some(lab) = require(&[&READ[..], &[Need::Processors(2)]].concat()) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    for (cores, roles) in [("0", 1), ("0,1", 2)] {
        let file = path(&lab, "filtered.pcapng");
        let arguments = ["--port", "packet:far0", "--to", &file, "--cores", cores];
        let filter = ["udp", "and", "greater", "1000"];
        let running = capture(&lab, &wire.far, &[&arguments[..], &filter].concat());
        let sent = send(
            &lab,
            &wire,
            &[
                "--size",
                "64,1518",
                "--rate",
                "5kpps",
                "--count",
                "2000",
                "--backlog",
                "2000",
            ],
        );
        assert_eq!(sent.number("sent"), 2000, "{sent}");
        let run = interrupted(running);
        assert_balanced(&run);
        assert_eq!((run.code, run.number("captured")), (Some(0), 1000), "{run}");
        let filtered = charged(&run.json()["ledger"], "filtered");
        assert_eq!((filtered, of_queues(&run, "filtered")), (1000, 1000), "{run}");
        assert_eq!(
            run.json()["workers"].as_array().map(Vec::len),
            Some(roles),
            "{run}"
        );
        let lens = fields(&file, "frame", &["frame.len"]);
        assert!(
            lens.len() == 1000 && lens.iter().all(|len| len == "1514"),
            "{}",
            lens.len()
        );
        let about = std::process::Command::new("capinfos")
            .args(["-I", &file])
            .output()
            .expect("capinfos");
        let about = String::from_utf8_lossy(&about.stdout);
        assert!(
            about.contains("udp and greater 1000"),
            "the file says so: {about}"
        );
    }
}

/// Of each flow all or nothing, and the same flows in every capture.
#[test]
fn whole_flows_are_sampled() {
    let Some(lab) = require(&READ) else { return };
    let wire = Wire::between(&lab, 1);
    let mut captured = Vec::new();
    for name in ["one.pcapng", "other.pcapng"] {
        let file = path(&lab, name);
        let arguments = ["--port", "packet:far0", "--to", &file, "--sample", "1/4"];
        let running = capture(&lab, &wire.far, &arguments);
        let sent = send(
            &lab,
            &wire,
            &[
                "--flows",
                "200",
                "--rate",
                "10kpps",
                "--count",
                "4000",
                "--backlog",
                "4000",
            ],
        );
        assert_eq!(sent.number("sent"), 4000, "{sent}");
        let run = interrupted(running);
        assert_balanced(&run);
        assert_eq!(run.code, Some(0), "{run}");
        let sampled_out = charged(&run.json()["ledger"], "sampled_out");
        assert_eq!(sampled_out, of_queues(&run, "sampled_out"), "{run}");
        assert_eq!(run.number("captured") + sampled_out, 4000, "{run}");
        let mut flows: BTreeMap<String, u32> = BTreeMap::new();
        for port in fields(&file, "udp.dstport==7", &["udp.srcport"]) {
            *flows.entry(port).or_default() += 1;
        }
        // 50 of 200 in the mean; what is drawn is always the same.
        assert!((20..90).contains(&flows.len()), "{}", flows.len());
        assert!(flows.values().all(|packets| *packets == 20), "{flows:?}");
        captured.push(flows);
    }
    assert_eq!(captured[0], captured[1]);
}

/// Two ports, a worker each, and one that merges: sorted, and nothing is lost in between.
#[test]
fn receivers_and_merge_share_the_work() {
    let Some(lab) = require(&[&READ[..], &[Need::Processors(2)]].concat()) else {
        return;
    };
    let file = path(&lab, "two.pcapng");
    let ports = [
        "capture",
        "--json",
        "--port",
        "ring:a",
        "--port",
        "ring:b,queues=2",
    ];
    let arguments = [&ports[..], &["--cores", "0,1", "--to", &file, "--duration", "1s"]].concat();
    let run = lab.dropless(&arguments).run();
    assert_balanced(&run);
    assert_eq!((run.code, run.number("late")), (Some(0), 0), "{run}");
    assert_eq!(run.number("generated"), run.number("captured"), "{run}");
    assert_eq!(run.json()["queues"].as_array().map(Vec::len), Some(3), "{run}");
    let times = fields(&file, "frame", &["frame.time_delta"]);
    assert_eq!(times.len() as u64, run.number("captured"));
    assert!(times.iter().all(|delta| !delta.starts_with('-')));
}

#[test]
fn what_cannot_be_is_one_line() {
    let Some(lab) = require(&[]) else { return };
    let refused = |arguments: &[&str], words: &[&str]| {
        let all = [&["capture"][..], arguments].concat();
        assert_refused(&lab.dropless(&all).run(), words);
    };
    refused(
        &["--filter", "udp port 53 adn host 10.0.0.1"],
        &["--filter", "syntax error", "at `adn host 10.0.0.1`"],
    );
    refused(
        &["--to", "a.pcapng", "--file-size", "2M"],
        &["--file-size of 2000000 bytes", "2MiB"],
    );
    refused(&["--ring-size", "1T"], &["--ring-size 1T:", "64 GiB at most"]);
    for little in ["0", "1k", "2M"] {
        let words = format!("--ring-size {little}: a ring has two segments");
        refused(&["--ring-size", little], &[&words, "2MiB"]);
    }
    refused(&["-n"], &["there is no -n here", "names are never looked up"]);
    refused(&["--ring", "a/b"], &["--ring a/b", "there is no directory a"]);
    assert!(!lab.path("a").exists());
    let long = "x".repeat(150);
    refused(
        &["--ring", &long],
        &["the name is too long", "107 bytes", "shorter"],
    );
    refused(&["port", "99999"], &["illegal port number 99999"]);
    refused(&["--sample", "10"], &["--sample 10", "1/10"]);
    refused(&["--sample", "1/0"], &["--sample 1/0"]);
    refused(&["--patience", "2ms"], &["--patience", "--order bounded"]);
    refused(&["--port", "ring,direct"], &["ring,direct"]);
    refused(
        &[
            "--cores", "0,1", "--queues", "1", "--port", "null", "--cores", "0-2",
        ],
        &["--cores"],
    );
}

/// What a `pcap:` port reads has a time of its own, which goes by no other clock.
#[test]
fn a_file_port_alone_is_stamped_by_its_file() {
    let Some(lab) = require(&[Need::Tool("tshark")]) else {
        return;
    };
    let mut packets = frames(200, 1_000_000);
    // A clock that was set back.
    packets[100].at_ns -= 500_000_000;
    let file = PLAIN.write(&lab, "in.pcap", &packets);
    packets[50].original_len += 1;
    let other = PLAIN.write(&lab, "other.pcap", &packets);
    let [port, other] = [file, other].map(|file| format!("pcap:{file}"));
    let told = |ports: &[&str], to: &str| {
        let to = path(&lab, to);
        // It ends with its files.
        let arguments = ["capture", "--json", "--to", &to];
        let run = lab.dropless(&[&arguments[..], ports].concat()).run();
        assert_balanced(&run);
        assert_eq!(run.code, Some(0), "{run}");
        (run, fields(&to, "frame", &["frame.time_epoch"]))
    };
    let (run, times) = told(&["--port", &port], "alone.pcapng");
    let expected: Vec<String> = packets
        .iter()
        .map(|packet| {
            format!(
                "{}.{:09}",
                packet.at_ns / 1_000_000_000,
                packet.at_ns % 1_000_000_000
            )
        })
        .collect();
    assert_eq!(times, expected, "{run}");
    assert_eq!(run.json()["stamped_by"][&port], "file", "{run}");
    assert_eq!(run.number("late"), 1, "{run}");
    assert!(!has_note(&run.json(), "pcap-cut"), "{run}");
    // In company there is one clock for all.
    let (run, times) = told(&["--port", &port, "--port", &other], "both.pcapng");
    assert_eq!((times.len(), run.number("late")), (400, 0), "{run}");
    assert!(times.is_sorted(), "{run}");
    // What one of its packets once was nobody can know behind the driver.
    assert!(has_note(&run.json(), "pcap-cut"), "{run}");
    for port in [&port, &other] {
        assert_eq!(run.json()["stamped_by"][port], "tsc", "{run}");
    }

    // Behind an error libpcap goes on in the middle of something.
    let mut damaged = PLAIN.bytes(&packets);
    let begins = 24
        + packets[..50]
            .iter()
            .map(|packet| 16 + packet.bytes.len())
            .sum::<usize>();
    damaged[begins + 8..][..4].copy_from_slice(&[0xFF; 4]);
    std::fs::write(lab.path("damaged.pcap"), damaged).expect("a file");
    let port = format!("pcap:{}", path(&lab, "damaged.pcap"));
    let run = lab.dropless(&["capture", "--json", "--port", &port]).run();
    assert_invalid(&run, "libpcap could not read on in its file");
    assert_balanced(&run);
    assert_eq!(charged(&run.json()["ledger"], "rx_error"), 0, "{run}");
}
