//! Debian's own `dpdk-dumpcap` and `dpdk-pdump` on a running dropless, which runs on hugepages for that (`--dpdk-tools`).

use std::time::Duration;

use crate::support::wire::{assert_all_back, assert_conserved, assert_refused};
use crate::support::{Need, require};

const NEEDS: [Need; 5] = [
    Need::Root,
    Need::Hugepages,
    Need::Tool("dpdk-dumpcap"),
    Need::Tool("dpdk-pdump"),
    Need::Tool("capinfos"),
];

/// In a mount namespace of its own, so that hugepages in files are nobody else's business. The run's files go with it.
const SCRIPT: &str = r#"
    mkdir -p pages && mount -t hugetlbfs hugetlbfs pages || exit 9
    "$DROPLESS" send --rate 1kpps --duration 20s --json --quiet --no-doctor --cores 0 --dpdk-tools >host.json &
    host=$!
    prefix=dropless-$host
    for i in $(seq 100); do [ -S /var/run/dpdk/$prefix/mp_socket ] && break; sleep 0.1; done
    sleep 1
    dpdk-dumpcap --file-prefix=$prefix -q -i 0 -c 300 -w cap.pcapng >&2 || exit 8
    dpdk-pdump --file-prefix=$prefix -- \
        --pdump "port=0,queue=*,rx-dev=$PWD/rx.pcap,tx-dev=$PWD/tx.pcap" >pdump.log 2>&1 &
    pdump=$!
    for i in $(seq 100); do [ -s rx.pcap ] && [ -s tx.pcap ] && break; sleep 0.1; done
    sleep 0.5
    kill -INT $pdump
    wait $pdump
    for file in cap.pcapng rx.pcap tx.pcap; do capinfos -Mc $file >&2; done
    kill -INT $host
    wait $host
    code=$?
    ls pages >&2
    cat host.json
    exit $code
"#;

#[test]
fn dumpcap_and_pdump_see_the_packets_and_the_books_still_balance() {
    let Some(lab) = require(&NEEDS) else { return };
    let script = format!("exec unshare -m sh -c '{SCRIPT}'");
    let run = lab.shell(&script).wait(Duration::from_secs(90));
    assert_eq!(run.code, Some(0), "{run}");
    let counts: Vec<u64> = run
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("Number of packets:")?.trim().parse().ok())
        .collect();
    let [dumped, received, sent] = counts[..] else {
        panic!("not three files: {run}");
    };
    assert!(dumped >= 300 && received > 0 && sent > 0, "{counts:?}\n{run}");
    // Both ways are seen alike, but for what is on its way.
    assert!(received.abs_diff(sent) < received / 2, "{counts:?}");
    assert!(!run.stderr.contains("map_0"), "hugepages are left behind: {run}");
    assert_conserved(&run);
    assert_all_back(&run);
    assert_eq!(run.number("ledger.unexplained"), 0, "{run}");
    assert_eq!(run.number("pool.leaked"), 0, "{run}");
}

/// A killed run, and one of ordinary memory after it.
const KILLED: &str = r#"
    mkdir -p pages && mount -t hugetlbfs hugetlbfs pages || exit 9
    "$DROPLESS" send --rate 1kpps --duration 20s --quiet --no-doctor --cores 0 --dpdk-tools >&2 &
    host=$!
    for i in $(seq 100); do [ -n "$(ls pages)" ] && break; sleep 0.1; done
    kill -KILL $host
    wait $host
    ls pages
    "$DROPLESS" send --count 10 --quiet --no-doctor --cores 0 --no-huge || exit 8
    ls pages >&2
"#;

#[test]
fn pages_of_a_killed_run_go_with_the_next_of_any_kind() {
    let Some(lab) = require(&[Need::Root, Need::Hugepages]) else {
        return;
    };
    let script = format!("exec unshare -m sh -c '{KILLED}'");
    let run = lab.shell(&script).wait(Duration::from_secs(60));
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.contains("map_0"), "it had none: {run}");
    assert!(!run.stderr.contains("map_0"), "hugepages are left behind: {run}");
}

#[test]
fn without_hugepages_it_is_refused() {
    let Some(lab) = require(&[]) else { return };
    if Need::Hugepages.is_met() {
        return;
    }
    let run = lab.dropless(&["send", "--dpdk-tools", "--count", "10"]).run();
    assert_refused(&run, &["--dpdk-tools", "huge pages"]);
}
