//! Floods of invented sources: what rates remember is bounded, and who keeps to the rate is not touched.

use std::fs;

use crate::guard::udp;
use crate::replay::{STARTING, assert_balanced, replay};
use crate::support::pcap_file::{Made, PLAIN};
use crate::support::wire::{Wire, interrupted};
use crate::support::{Finished, Lab, Need, Running, require};

const NEEDS: [Need; 1] = [Need::Namespaces];
/// Sources that are real, in 10.0.0.0/8, a /24 each: so few that no five of them share a bucket of the table.
const REAL: u64 = 20;

fn frame(number: u64, source: [u8; 4]) -> Made {
    let bytes = udp([2, 0, 0, 0, 0, 1], source, (5000, 9));
    Made::whole(1_700_000_000_000_000_000 + number * 1000, bytes)
}

/// From a real source.
fn real(number: u64) -> Made {
    frame(number, [10, 0, (number % REAL) as u8, 1])
}

/// From one that is invented: no two numbers below 2^23 have a /24 in common, and none has one with a real source.
fn invented(number: u64) -> Made {
    let spread = (number as u32).wrapping_mul(0x009E_3779) & 0x00FF_FFFF;
    let [_, one, two, three] = spread.to_be_bytes();
    frame(number, [one | 128, two, three, number as u8])
}

/// A filter at the far end whose rate every packet must keep.
fn filter(lab: &Lab, wire: &Wire, rate: &str, arguments: &[&str]) -> Running {
    let rules = format!("rate {rate}\nallow from 10.0.0.0/8\ndefault allow\n");
    fs::write(lab.path("flood.rules"), rules).expect("a rule file");
    let run = ["filter", "run", "flood.rules", "--dev", "far0", "--json"];
    let mut running = lab
        .dropless(&[&run[..], arguments].concat())
        .within(&wire.far)
        .spawn();
    running.wait_for("in force on far0", STARTING);
    running
}

fn send(lab: &Lab, wire: &Wire, packets: &[Made]) -> u64 {
    let file = PLAIN.write(lab, "flood.pcap", packets);
    let run = replay(lab, wire, &file, &["--rate", "max"]);
    assert_balanced(&run);
    run.number("sent")
}

/// What the wire had no room for, before the filter.
fn lost_on(wire: &Wire) -> u64 {
    let path = "/sys/class/net/near0/statistics/tx_dropped";
    let told = wire.near.run("cat", &[path]);
    told.trim().parse().expect("a count")
}

fn met(run: &Finished, rule: &str) -> u64 {
    let json = run.json();
    let rules = json["judged"]["rules"].as_array().expect("rules").clone();
    let found = rules.iter().find(|one| one["rule"] == rule);
    found.and_then(|one| one["packets"].as_u64()).expect("a rule")
}

/// Half a million invented sources, a thousand packets of real ones among them: all of these pass.
#[test]
fn real_sources_pass_among_invented_ones() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let filter = filter(&lab, &wire, "100pps per source/24 burst 1000", &[]);
    let flood = 500_000;
    let packets: Vec<Made> = (0..flood)
        .map(|number| {
            if number % 500 == 0 {
                real(number / 500)
            } else {
                invented(number)
            }
        })
        .collect();
    let sent = send(&lab, &wire, &packets);
    assert_eq!(sent, flood);
    let judged = interrupted(filter);
    assert_eq!(judged.code, Some(0), "{judged}");
    let lost = lost_on(&wire);
    let all = judged.json()["judged"].clone();
    let count = |name: &str| all[name].as_u64().expect("a count");
    assert_eq!(count("allowed") + count("denied") + lost, sent, "{judged}");
    let real = met(&judged, "allow from 10.0.0.0/8");
    assert!(real <= flood / 500 && real + lost >= flood / 500, "{judged}");
    // A million groups are remembered, and each only for as long as it may not send again.
    assert_eq!(count("denied"), count("groups_full"), "{judged}");
}

/// Where invented sources fill all that rates remember, those that were there before keep their place, and the flood gets no more
/// than there is room for.
#[test]
fn a_full_table_keeps_those_that_were_there_before() {
    let Some(lab) = require(&NEEDS) else { return };
    let wire = Wire::between(&lab, 1);
    let filter = filter(
        &lab,
        &wire,
        "1pps per source/24 burst 100000",
        &["--groups", "4096"],
    );
    let known: Vec<Made> = (0..REAL * 200).map(real).collect();
    let flood: Vec<Made> = (0..300_000).map(invented).collect();
    let again: Vec<Made> = (0..REAL * 100).map(real).collect();
    let sent: u64 = [known, flood, again]
        .iter()
        .map(|part| send(&lab, &wire, part))
        .sum();
    let judged = interrupted(filter);
    assert_eq!(judged.code, Some(0), "{judged}");
    let lost = lost_on(&wire);
    let all = judged.json()["judged"].clone();
    let count = |name: &str| all[name].as_u64().expect("a count");
    assert_eq!(count("allowed") + count("denied") + lost, sent, "{judged}");
    let real = met(&judged, "allow from 10.0.0.0/8");
    assert!(real <= REAL * 300 && real + lost >= REAL * 300, "{judged}");
    assert!(count("groups_full") > 0, "{judged}");
    assert_eq!(count("denied"), count("groups_full"), "{judged}");
}
