//! What stands beside a forwarded link: the host, which stays reachable by a tap, and the table of its flows.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::forward::{DATAGRAMS, PINGS, Path, assert_sound};
use crate::support::wire::{assert_refused, interrupted};
use crate::support::{Finished, Need, require, until};

const LIMIT: Duration = Duration::from_secs(60);
/// Over one TCP connection, each way.
const MEGABYTES: usize = 3;

/// The flows that are told, of this protocol.
fn flows<'r>(run: &'r Value, protocol: &str) -> Vec<&'r Value> {
    let all = run["flows"]["by_packets"].as_array().expect("flows");
    all.iter()
        .filter(|flow| flow["protocol_name"] == protocol)
        .collect()
}

#[test]
fn flows_are_counted_to_the_packet() {
    let Some(lab) = require(&[Need::Namespaces]) else {
        return;
    };
    let path = Path::new(&lab);
    let rules = lab.path("edge.rules");
    fs::write(&rules, "deny udp dport 9\n").expect("a rule file");
    let rules = rules.to_str().expect("a path");
    let forward = path.forward(&lab, "packet", &["--flows", "100", "--rules", rules]);
    path.ping();
    path.datagrams();
    let run = interrupted(forward);
    assert_sound(&run);
    let json = run.json();
    let counted = &json["flows"];
    let number = |name: &str| counted[name].as_u64().expect("a count");
    assert_eq!(number("packets"), run.number("received"), "{run}");
    assert_eq!(number("evictions"), 0, "{run}");
    let icmp: Vec<(u64, &str, u64)> = flows(&json, "ICMP")
        .iter()
        .map(|flow| {
            let number = |name: &str| flow[name].as_u64().expect("a count");
            (
                number("port"),
                flow["source"].as_str().expect("an address"),
                number("packets"),
            )
        })
        .collect();
    // What a rule denies is counted, too.
    let udp = flows(&json, "UDP");
    let datagrams: u64 = udp.iter().filter_map(|flow| flow["packets"].as_u64()).sum();
    assert_eq!(datagrams, DATAGRAMS, "{run}");
    assert!(udp.iter().all(|flow| flow["ports"][1] == 9), "{run}");
    assert!(icmp.contains(&(0, "10.77.0.1", PINGS)), "{run}");
    assert!(
        icmp.iter()
            .any(|(port, source, _)| (*port, *source) == (1, "10.77.0.2")),
        "{run}"
    );
    let directory = json["run"].as_str().expect("a run directory");
    let rows = fs::read_to_string(lab.path(directory).join("flows.csv")).expect("flows.csv");
    assert_eq!(rows.lines().count() as u64, number("flows") + 1, "{rows}");
    let packets: u64 = rows
        .lines()
        .skip(1)
        .map(|row| {
            row.split(',')
                .nth(8)
                .expect("a column")
                .parse::<u64>()
                .expect("a count")
        })
        .sum();
    assert_eq!(packets + number("other_packets"), number("packets"), "{rows}");
}

/// What is addressed to the host goes there and nowhere else, the rest passes by, and what is for all goes both ways.
#[test]
fn the_host_stays_reachable_beside_the_link() {
    let Some(lab) = require(&[Need::Namespaces, Need::Tool("socat")]) else {
        return;
    };
    let path = Path::new(&lab);
    let forward = path.forward(&lab, "xdp", &["--kernel", "tap:host0"]);
    assert_eq!(
        path.middle.mac("host0"),
        path.middle.mac("ml"),
        "it is the port's"
    );
    path.middle.without_ipv6("host0");
    path.middle.up("host0", &["10.77.0.3/24"]);

    let count = PINGS.to_string();
    let host = path
        .left
        .run("ping", &["-c", &count, "-i", "0.02", "-W", "10", "10.77.0.3"]);
    assert!(
        host.contains(&format!("{count} received")) && !host.contains("DUP"),
        "{host}"
    );
    path.ping();

    let file = lab.path("bytes");
    let bytes: Vec<u8> = (0..MEGABYTES << 20).map(|at| (at * 31 % 251) as u8).collect();
    fs::write(&file, &bytes).expect("a file");
    let file = file.to_str().expect("a path");
    let echoed = lab.path("echoed");
    let echo = path
        .middle
        .spawn("socat", &["TCP-LISTEN:7000,reuseaddr", "EXEC:cat"]);
    let listens = || path.middle.run("ss", &["-ltnH"]).contains(":7000");
    assert!(until(LIMIT, listens), "{echo:?}");
    let out = format!("{file}!!CREATE:{}", echoed.to_str().expect("a path"));
    path.left.run("socat", &["-t", "30", &out, "TCP:10.77.0.3:7000"]);
    assert!(
        fs::read(&echoed).expect("what came back") == bytes,
        "TCP to the host is whole"
    );
    // The path beside it is as it was.
    path.ping();

    let run = interrupted(forward);
    assert_sound_beside(&run);
}

/// As a path without a host, and the tap's driver counted what we did.
fn assert_sound_beside(run: &Finished) {
    let json = run.json();
    assert_eq!(json["verdict"], "valid", "{run}");
    let ways = json["ways"].as_array().expect("ways");
    let number = |way: usize, name: &str| ways[way][name].as_u64().unwrap_or(0);
    assert!(
        number(0, "to_kernel") > PINGS && number(1, "from_kernel") > PINGS,
        "{run}"
    );
    // ARP at the least; nothing from the second port is the host's.
    assert!(number(0, "copied") > 0, "{run}");
    assert_eq!(
        (number(1, "to_kernel"), number(0, "from_kernel")),
        (0, 0),
        "{run}"
    );
    let tap = &json["ports"][2];
    assert_eq!(
        tap["tx_packets"],
        number(0, "to_kernel") + number(0, "copied"),
        "{run}"
    );
    assert_eq!(tap["rx_packets"], number(1, "from_kernel"), "{run}");
    for way in ways {
        assert_eq!(way["ledger"]["unexplained"], 0, "{run}");
    }
}

#[test]
fn a_kernel_that_has_the_interface_needs_no_tap() {
    let Some(lab) = require(&[]) else { return };
    let run = |arguments: &[&str]| {
        let ports = ["forward", "--port", "packet:lo", "--port", "null"];
        lab.dropless(&[&ports[..], arguments].concat()).run()
    };
    assert_refused(
        &run(&["--kernel", "tap:x0"]),
        &["packet:lo", "leave --kernel out"],
    );
    let twice = ["--kernel", "tap:x0", "--kernel", "tap:x1", "--kernel", "tap:x2"];
    assert_refused(&run(&twice), &["--kernel is given 3 times"]);
    assert_refused(&run(&["--flows", "100000000"]), &["--flows", "use fewer"]);
    let other = [
        "forward", "--port", "null:a", "--port", "null:b", "--kernel", "null:c",
    ];
    assert_refused(&lab.dropless(&other).run(), &["no tap", "--kernel tap:NAME"]);
}
