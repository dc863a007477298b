//! `dropless guard`: one who floods many hosts, each of which gets little.

use serde_json::Value;

use crate::guard::udp_to;
use crate::support::pcap_file::{Made, PLAIN};
use crate::support::wire::has_note;
use crate::support::{Finished, Lab, require};

const S: u64 = 1_000_000_000;
/// A resolver, and how many packets of it there are a second until the flood, and with it.
const RESOLVER: [u8; 4] = [9, 9, 9, 9];
const USUAL: [u64; 2] = [200, 6_000];
/// Who floods, how long, and with how many packets a second.
const BAD: [u8; 4] = [203, 0, 113, 9];
const FLOOD: (u64, u64) = (2, 8_000);
/// Hosts that they send to.
const HOSTS: u64 = 3_000;

fn host(number: u64) -> [u8; 4] {
    [
        198,
        18 + (number / 1000) as u8,
        (number / 10 % 100) as u8,
        (number % 10) as u8,
    ]
}

/// A resolver that answers all hosts for so long, and more of them then, while somebody floods them.
fn packets(quiet_s: u64) -> Vec<Made> {
    let made = |at_ns: u64, bytes| Made::whole(1_700_000_000 * S + at_ns, bytes);
    let answer = |number: u64| {
        udp_to(
            [2; 6],
            (RESOLVER, host(number % 400)),
            (53, 40_000 + (number % 9999) as u16),
        )
    };
    let before = (0..quiet_s * USUAL[0]).map(|number| made(number * S / USUAL[0], answer(number)));
    let since =
        (0..FLOOD.0 * USUAL[1]).map(|number| made(quiet_s * S + number * S / USUAL[1], answer(number)));
    let flood = (0..FLOOD.0 * FLOOD.1).map(|number| {
        let to = host(number * 7919 % HOSTS);
        made(
            quiet_s * S + number * S / FLOOD.1,
            udp_to([2; 6], (BAD, to), (4000, 9)),
        )
    });
    let mut all: Vec<Made> = before.chain(since).chain(flood).collect();
    all.sort_by_key(|packet| packet.at_ns);
    all
}

fn guard(lab: &Lab, file: &str, more: &[&str]) -> Finished {
    let all = [
        &["guard", "--replay", file, "--threshold", "udp=2kpps", "--json"][..],
        more,
    ]
    .concat();
    let run = lab.dropless(&all).run();
    assert_eq!(run.code, Some(0), "{run}");
    run
}

#[test]
fn who_floods_many_hosts_is_blocked_by_its_address_and_a_busy_resolver_is_not() {
    let Some(lab) = require(&[]) else { return };
    let file = PLAIN.write(&lab, "spread.pcap", &packets(35));
    let kept = lab.path("kept.json").display().to_string();
    let run = guard(&lab, &file, &["--baseline", &kept]);
    let told = run.json();
    let blocks = told["blocks"].as_array().expect("rules");
    assert_eq!(blocks.len(), 1, "{run}");
    assert_eq!(
        (
            &blocks[0]["rule"],
            &blocks[0]["source"],
            &blocks[0]["destination"]
        ),
        (
            &"deny udp sport 4000 dport 9 from 203.0.113.9".into(),
            &"203.0.113.9".into(),
            &Value::Null
        )
    );
    // By the times of the file: what came after the rule was denied, and nothing else.
    let after_s = blocks[0]["stopped_after_s"].as_f64().expect("a time");
    assert!(after_s > 0.0 && after_s < 1.0, "{run}");
    let flood = (FLOOD.0 * FLOOD.1) as f64;
    let expected = (flood - FLOOD.1 as f64 * after_s) as u64;
    let denied = told["judged"]["denied"].as_u64().expect("a count");
    assert!(denied.abs_diff(expected) <= 2, "{denied} of {expected}");
    assert_eq!(
        (
            blocks[0]["packets"].as_u64(),
            has_note(&told, "sources_not_judged")
        ),
        (Some(denied), false),
        "{run}"
    );
    let refusals = told["refusals"].as_array().expect("refusals");
    assert!(
        refusals.iter().any(|refusal| refusal["source"] == "9.9.9.9"),
        "{run}"
    );
    let dry = guard(&lab, &file, &["--dry-run"]).json();
    assert_eq!(
        (dry["blocks"].as_array().map(Vec::len), &dry["judged"]["denied"]),
        (Some(1), &0.into())
    );
    // The same beginning without what was there before: no source is judged, unless a baseline knows some.
    let short = PLAIN.write(&lab, "short.pcap", &packets(1));
    let naive = guard(&lab, &short, &[]);
    let told = naive.json();
    assert_eq!(
        (&told["blocks"], has_note(&told, "sources_not_judged")),
        (&Value::Array(Vec::new()), true),
        "{naive}"
    );
    let wise = guard(&lab, &short, &["--baseline", &kept]);
    let told = wise.json();
    assert!(!has_note(&told, "sources_not_judged"), "{wise}");
    let blocks = told["blocks"].as_array().expect("rules");
    let sources: Vec<&Value> = blocks.iter().map(|block| &block["source"]).collect();
    assert_eq!(sources, ["203.0.113.9"], "{wise}");
}
