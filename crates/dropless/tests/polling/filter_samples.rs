//! Samples of `dropless filter run`: what was denied stands in a file, each packet with its rule, and the rest is counted.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use crate::filter_run::{BOTH, at, filter, rules, send, sent};
use crate::support::wire::{Wire, has_note, interrupted};
use crate::support::{Mount, Need, require};

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn samples_of_denied_packets_say_by_which_rule() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("tshark")]) else {
        return;
    };
    let wire = Wire::between(&lab, 1);
    rules(&lab, "deny udp dport 7\n");
    let filter = filter(&lab, &wire, &["--sample", "drops.pcapng", "--sample-rate", "50"]);
    let load = [&BOTH[..], &["--rate", "2kpps", "--count", "2000"]].concat();
    let all = sent(&send(&lab, &wire, &load).run());
    let judged = interrupted(filter);
    let denied = at(&judged, "deny udp dport 7");
    assert!(denied > 0 && denied < all, "{judged}");
    let about = std::fs::metadata(lab.path("drops.pcapng")).expect("a file");
    assert_eq!(about.permissions().mode() & 0o777, 0o600, "{judged}");
    let written = judged.number("samples.written");
    assert!(written > 0 && written < denied, "{judged}");
    assert_eq!(written + judged.number("samples.left_out"), denied, "{judged}");
    let shown = lab
        .shell("tshark -r drops.pcapng -T fields -e udp.dstport -e frame.comment 2>/dev/null")
        .wait(LIMIT);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(lines.len() as u64, written, "{shown}");
    let expected = "7\tdenied by edge.rules:1 deny udp dport 7";
    assert!(lines.iter().all(|line| *line == expected), "{shown}");
    // Without Wireshark, too.
    let read = lab.dropless(&["read", "drops.pcapng", "--count", "1"]).run();
    assert!(
        read.stdout
            .ends_with(" # denied by edge.rules:1 deny udp dport 7\n"),
        "{read}"
    );
}

/// A full disk ends the samples and not the filter: the file has whole packets, as many as are told.
#[test]
fn samples_end_with_the_disk_and_the_filter_does_not() {
    let Some(lab) = require(&[Need::Namespaces, Need::Root, Need::Tool("tshark")]) else {
        return;
    };
    let _disk = Mount::disk("128k", &lab.path("disk"));
    let wire = Wire::between(&lab, 1);
    rules(&lab, "deny udp dport 7\n");
    let sampled = ["--sample", "disk/drops.pcapng", "--sample-rate", "10k"];
    let running = filter(&lab, &wire, &sampled);
    let load = [&BOTH[..], &["--rate", "5kpps", "--count", "10000"]].concat();
    let all = sent(&send(&lab, &wire, &load).run());
    let judged = interrupted(running);
    let shown = lab
        .shell("tshark -r disk/drops.pcapng -T fields -e udp.dstport")
        .wait(LIMIT);
    let denied = at(&judged, "deny udp dport 7");
    assert_eq!(denied, all / 2, "{judged}");
    assert!(has_note(&judged.json(), "samples_not_written"), "{judged}");
    let written = judged.number("samples.written");
    assert_eq!(written + judged.number("samples.left_out"), denied, "{judged}");
    assert!(written > 0 && written < denied, "{judged}");
    assert_eq!(shown.stdout.lines().count() as u64, written, "{shown}");
    assert!(!shown.stderr.contains("cut short"), "{shown}");
    assert_eq!(shown.code, Some(0), "{shown}");
}
