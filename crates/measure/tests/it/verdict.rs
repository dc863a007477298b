//! Every reason that makes a run invalid, and what must not.

use measure::result::{PoolSummary, Stall};
use measure::verdict::{Late, LinkLoss, Role, TooShort, Unserved};
use measure::{Evidence, Hindrance, Imbalance, Reason, Validity, Verdict};

/// Evidence of a good run: 1 Mpps for 10 s, everything back.
fn good() -> Evidence {
    Evidence {
        ports: 1,
        sent: 10_000_000,
        received: 10_000_000,
        intended: 10_000_000,
        asked_pps: Some(1e6),
        sending_ns: 10_000_000_000,
        senders: 1,
        clock_uncertainty_ppm: 0.4,
        pools: vec![(
            PoolSummary {
                name: "packets".into(),
                size: 16_384,
                ..PoolSummary::default()
            },
            None,
        )],
        ..Evidence::default()
    }
}

/// Judges, demands exactly one reason of that name, and returns its sentence.
fn only_reason(evidence: &Evidence, name: &str) -> String {
    let verdict = Verdict::of(evidence);
    assert_eq!(verdict.validity, Validity::Invalid);
    let names: Vec<&str> = verdict.reasons.iter().map(Reason::code).collect();
    assert_eq!(names, [name]);
    verdict.notes().remove(0).text
}

fn valid(evidence: &Evidence) {
    let verdict = Verdict::of(evidence);
    assert_eq!(verdict.notes(), []);
    assert_eq!(verdict.validity, Validity::Valid);
}

#[test]
fn a_good_run_is_valid() {
    valid(&good());
}

#[test]
fn no_evidence_at_all_is_not_a_good_run() {
    assert_eq!(Verdict::of(&Evidence::default()).validity, Validity::Invalid);
}

#[test]
fn unbalanced() {
    let imbalance = Imbalance::Arrived {
        frames: 5,
        classified: 4,
    };
    let text = only_reason(
        &Evidence {
            imbalances: vec![imbalance],
            ..good()
        },
        "unbalanced",
    );
    assert_eq!(
        text,
        "the ledger does not balance: 5 frames arrived, but 4 were classified"
    );
}

#[test]
fn nothing_sent() {
    // What was never sent is not short of the asked rate, too: one reason is enough.
    let verdict = Verdict::of(&Evidence {
        sent: 0,
        received: 0,
        ..good()
    });
    let names: Vec<&str> = verdict.reasons.iter().map(Reason::code).collect();
    assert_eq!(names, ["nothing_sent", "nothing_received"]);
}

#[test]
fn nothing_received() {
    only_reason(
        &Evidence {
            received: 0,
            ..good()
        },
        "nothing_received",
    );
    valid(&Evidence {
        received: 0,
        role: Role::SendOnly,
        ..good()
    });
    let reflect = Evidence {
        role: Role::Reflect,
        sent: 0,
        asked_pps: None,
        intended: 0,
        ..good()
    };
    valid(&reflect);
    only_reason(
        &Evidence {
            received: 0,
            ..reflect
        },
        "nothing_received",
    );
}

#[test]
fn no_ports() {
    only_reason(&Evidence { ports: 0, ..good() }, "no_ports");
}

#[test]
fn offered_below_asked() {
    let text = only_reason(
        &Evidence {
            sent: 9_989_000,
            received: 9_989_000,
            ..good()
        },
        "underoffered",
    );
    assert_eq!(
        text,
        "offered 998.9 kpps of 1.000 Mpps asked (99.890 %): the sender could not keep up; ask for less with --rate, or let more cores send, with --cores and --tx-queues"
    );
    valid(&Evidence {
        sent: 9_990_001,
        received: 9_990_001,
        ..good()
    });
    valid(&Evidence {
        sent: 5,
        received: 5,
        asked_pps: None,
        ..good()
    });
}

/// A second of ten is missing: the reason says who had most of it.
#[test]
fn whoever_kept_the_sender_from_sending_is_named() {
    let short = |stalled_ns, full_ns| Evidence {
        sent: 9_000_000,
        received: 9_000_000,
        hindrance: Hindrance { stalled_ns, full_ns },
        ..good()
    };
    let text = only_reason(&short(0, 1_100_000_000), "port_full");
    assert_eq!(
        text,
        "offered 900.0 kpps of 1.000 Mpps asked (90.000 %): the port took no more, its transmit queue was full for 1.100 s of that time: the link or the far side was the limit, not the sender; ask for less with --rate"
    );
    let text = only_reason(&short(1_000_000_000, 0), "sender_stalled");
    assert!(
        text.contains("a worker of ours did not poll for 1.000 s") && text.contains("--explain"),
        "{text}"
    );
    // A queue that was full while nobody looked may have been empty.
    only_reason(&short(900_000_000, 900_000_001), "sender_stalled");
    // Nobody else covers most of it.
    only_reason(&short(400_000_000, 700_000_000), "underoffered");
    // Who offered all was not kept from it.
    valid(&Evidence {
        hindrance: Hindrance {
            stalled_ns: 1_000_000_000,
            full_ns: 1_000_000_000,
        },
        ..good()
    });
}

#[test]
fn a_schedule_that_forgot_packets_is_found_by_the_clock() {
    let forgetful = Evidence {
        sent: 5_000_000,
        received: 5_000_000,
        intended: 5_000_000,
        ..good()
    };
    let text = only_reason(&forgetful, "underoffered");
    assert!(text.contains("50.000 %"), "{text}");
}

#[test]
fn a_short_run_is_not_short_by_rounding() {
    valid(&Evidence {
        sent: 9,
        received: 9,
        intended: 9,
        asked_pps: Some(1.0),
        sending_ns: 9_700_000_000,
        ..good()
    });
    let two_missing = Evidence {
        sent: 7,
        received: 7,
        intended: 9,
        asked_pps: Some(1.0),
        ..good()
    };
    only_reason(
        &Evidence {
            sending_ns: 9_000_000_000,
            ..two_missing
        },
        "underoffered",
    );
}

#[test]
fn link_lost() {
    let mut loss = LinkLoss {
        port: "packet:eth1".into(),
        at_ns: 1_500_000_000,
        down_ns: Some(20_000_000),
        more: 0,
    };
    let text = only_reason(
        &Evidence {
            link_losses: vec![loss.clone()],
            ..good()
        },
        "link_lost",
    );
    assert_eq!(
        text,
        "port packet:eth1 lost its link 1.500 s after the start, for 20.00 ms"
    );
    let many = LinkLoss {
        more: 1_233,
        ..loss.clone()
    };
    let text = only_reason(
        &Evidence {
            link_losses: vec![many],
            ..good()
        },
        "link_lost",
    );
    assert_eq!(
        text,
        "port packet:eth1 lost its link 1,234 times from 1.500 s after the start on, for 20.00 ms in all"
    );
    loss.down_ns = None;
    let text = only_reason(
        &Evidence {
            link_losses: vec![loss],
            ..good()
        },
        "link_lost",
    );
    assert!(text.ends_with("until the end"), "{text}");
}

#[test]
fn receiver_stalled() {
    let stall = |core, gap_ns| Stall {
        core,
        role: "receive".into(),
        at_ns: 5,
        gap_ns,
        ring_holds_ns: 1_000_000,
        ..Stall::default()
    };
    let stalls = vec![stall(2, 1_500_000), stall(2, 3_000_000), stall(2, 2_000_000)];
    let text = only_reason(
        &Evidence {
            stalls: stalls.clone(),
            unexplained: 7,
            ..good()
        },
        "receiver_stalled",
    );
    assert_eq!(
        text,
        "the receiver on core 2 stalled for 3.000 ms, its ring holds 1.000 ms: 7 missing packets may be its own"
    );
    only_reason(
        &Evidence {
            stalls: stalls.clone(),
            rx_missed: 1,
            ..good()
        },
        "receiver_stalled",
    );
    // Nothing is missing: the pause did no harm.
    valid(&Evidence { stalls, ..good() });
    // The ring held: what is missing was lost elsewhere.
    valid(&Evidence {
        stalls: vec![stall(2, 1_000_000)],
        unexplained: 7,
        ..good()
    });
    let two_cores = Evidence {
        stalls: vec![stall(1, 2_000_000), stall(3, 2_000_000)],
        unexplained: 1,
        ..good()
    };
    assert_eq!(Verdict::of(&two_cores).reasons.len(), 2);
    // What waits for a place in our ring is given up after a while: not by its own fault.
    let waited_for = |gap_ns, far_gave_up| Evidence {
        waited_for: Some(stall(2, gap_ns)),
        far_gave_up,
        ..good()
    };
    valid(&waited_for(100_000_000, 9));
    valid(&waited_for(500_000_000, 0));
    let text = only_reason(&waited_for(500_000_000, 9), "given_up_by_stall");
    assert_eq!(
        text,
        "the receiver on core 2 stalled for 500.0 ms, and a far side that finds its ring full waits 100.0 ms: the 9 packets that it gave up may be our own"
    );
}

#[test]
fn what_may_have_waited_for_a_worker_of_ours_is_not_the_paths() {
    let late = |packets, usual_ns, gap_ns| Evidence {
        received: 5_000_000,
        late: Late {
            packets,
            drain_ns: 3_000_000,
            usual_ns,
            core: 1,
            gap_ns,
        },
        ..good()
    };
    let text = only_reason(&late(5_000_000, 0, 20_000_000), "late_by_stall");
    assert_eq!(
        text,
        "5,000,000 packets came later than --drain (3.000 ms), and the worker on core 1 did not poll for 20.00 ms: they may have waited for it; give --drain more time"
    );
    // A shorter one is enough where packets take most of that time anyhow.
    only_reason(&late(1, 2_500_000, 500_001), "late_by_stall");
    valid(&late(1, 2_500_000, 500_000));
    valid(&late(0, 0, 20_000_000));
}

#[test]
fn clock_bad() {
    let problem = vec!["the TSC is not invariant".to_owned()];
    let text = only_reason(
        &Evidence {
            clock_problems: problem,
            ..good()
        },
        "clock_bad",
    );
    assert_eq!(text, "the clock is not good: the TSC is not invariant");
    only_reason(
        &Evidence {
            clock_uncertainty_ppm: 101.0,
            ..good()
        },
        "clock_bad",
    );
    only_reason(
        &Evidence {
            clock_uncertainty_ppm: f64::NAN,
            ..good()
        },
        "clock_bad",
    );
}

#[test]
fn pool_leak() {
    let mut leaky = good();
    leaky.pools[0].0.leaked = 3;
    assert_eq!(only_reason(&leaky, "pool_leak"), "pool packets leaked 3 buffers");
    leaky.pools[0].1 = Some("transmit ring of port 0".into());
    assert_eq!(
        only_reason(&leaky, "pool_leak"),
        "pool packets leaked 3 buffers, last seen: transmit ring of port 0"
    );
}

#[test]
fn worker_died() {
    let dead = vec![("send on core 3".to_owned(), "it panicked".to_owned())];
    let text = only_reason(
        &Evidence {
            dead_workers: dead,
            ..good()
        },
        "worker_died",
    );
    assert_eq!(text, "worker send on core 3 died: it panicked");
}

#[test]
fn every_reason_is_given_not_only_the_first() {
    let mut bad = Evidence {
        ports: 0,
        received: 0,
        clock_uncertainty_ppm: 1e6,
        ..good()
    };
    bad.pools[0].0.leaked = 1;
    assert_eq!(Verdict::of(&bad).reasons.len(), 4);
}

#[test]
fn an_mtu_that_was_lowered_is_named() {
    let text = only_reason(
        &Evidence {
            too_short: vec![TooShort {
                port: "packet:eth1".into(),
                needed: 1500,
                mtu: 576,
            }],
            ..good()
        },
        "mtu_lowered",
    );
    assert_eq!(
        text,
        "the MTU of port packet:eth1 was 576 in the run, and its longest frames need 1500: what was longer was thrown away, and counts as sent"
    );
}

/// What speaks against a run, each alone: a run with any of it must not pass for valid.
#[test]
fn each_reason_is_found_by_itself() {
    let stall = Stall {
        core: 2,
        gap_ns: 500_000_000,
        ring_holds_ns: 1_000_000,
        ..Stall::default()
    };
    let short = |stalled_ns, full_ns| Evidence {
        sent: 9_000_000,
        received: 9_000_000,
        hindrance: Hindrance { stalled_ns, full_ns },
        ..good()
    };
    let port = || vec!["packet:eth1".to_owned()];
    let mut leaky = good();
    leaky.pools[0].0.leaked = 3;
    #[rustfmt::skip]
    let each = vec![
        ("unbalanced", Evidence { imbalances: vec![Imbalance::Arrived { frames: 5, classified: 4 }], ..good() }),
        ("nothing_sent", Evidence { role: Role::SendOnly, sent: 0, received: 0, ..good() }),
        ("nothing_received", Evidence { received: 0, ..good() }),
        ("no_ports", Evidence { ports: 0, ..good() }),
        ("underoffered", short(0, 0)),
        ("sender_stalled", short(1_000_000_000, 0)),
        ("port_full", short(0, 1_000_000_000)),
        ("link_lost", Evidence { link_losses: vec![LinkLoss::default()], ..good() }),
        ("port_removed", Evidence { removed: port(), ..good() }),
        ("mtu_lowered", Evidence { too_short: vec![TooShort { port: String::new(), needed: 1500, mtu: 576 }], ..good() }),
        ("queue_unserved", Evidence { unserved: vec![Unserved { port: "vhost:/v".into(), queues: 1, packets: 500 }], ..good() }),
        ("counters_unread", Evidence { unread: port(), ..good() }),
        ("receiver_stalled", Evidence { stalls: vec![stall.clone()], unexplained: 7, ..good() }),
        ("given_up_by_stall", Evidence { waited_for: Some(stall), far_gave_up: 9, ..good() }),
        ("late_by_stall", Evidence { late: Late { packets: 1, drain_ns: 5, gap_ns: 6, ..Late::default() }, ..good() }),
        ("workers_away", Evidence { away_ns: 10_000_000_000, unexplained: 3, ..good() }),
        ("clock_bad", Evidence { clock_uncertainty_ppm: 101.0, ..good() }),
        ("file_short", Evidence { short_files: vec![("a.pcapng".into(), 5)], ..good() }),
        ("tap_not_ended", Evidence { unended_taps: Some(7), ..good() }),
        ("perhaps_copies", Evidence { perhaps_copies: 1, ..good() }),
        ("contradicted", Evidence { contradictions: 1, ..good() }),
        ("heard_each_other", Evidence { as_sent: 1, probes: 2, ..good() }),
        ("pool_leak", leaky),
        ("input_broken", Evidence { broken_input: Some("cut off".into()), ..good() }),
        ("file_slow", Evidence { starved: (1, 5_000_000), ..good() }),
        ("worker_died", Evidence { dead_workers: vec![("send".into(), "it panicked".into())], ..good() }),
    ];
    for (code, evidence) in &each {
        only_reason(evidence, code);
    }
    let mut tested: Vec<&str> = each.into_iter().map(|(code, _)| code).collect();
    tested.sort_unstable();
    let mut all: Vec<&str> = Reason::codes().collect();
    all.sort_unstable();
    assert_eq!(tested.as_slice(), all, "each reason has evidence of its own here");
}

#[test]
fn the_port_and_the_file_are_named() {
    let text = |evidence: &Evidence| Verdict::of(evidence).notes().remove(0).text;
    let port = vec!["packet:eth1".to_owned()];
    let removed = Evidence {
        removed: port.clone(),
        ..good()
    };
    assert_eq!(
        text(&removed),
        "port packet:eth1 lost its link: the interface was removed"
    );
    let unread = Evidence {
        unread: port,
        ..good()
    };
    assert!(text(&unread).contains("of port packet:eth1 could not be read"));
    let short = Evidence {
        short_files: vec![("a.pcapng".into(), 5)],
        ..good()
    };
    assert!(text(&short).starts_with("a.pcapng lacks 5 bytes"));
}

/// A replay has no flags for more senders, and a file that gave nothing more has no late packets.
#[test]
fn a_replay_is_told_what_it_can_do() {
    let slow = Evidence {
        role: Role::Replay,
        received: 0,
        sent: 5_000_000,
        ..good()
    };
    let text = only_reason(&slow, "underoffered");
    assert!(
        text.contains("--cores") && !text.contains("--tx-queues"),
        "{text}"
    );
    let stalled = |packets| Evidence {
        role: Role::Replay,
        received: 0,
        starved: (packets, 2_000_000_000),
        ..good()
    };
    let text = only_reason(&stalled(0), "file_slow");
    assert!(text.contains("nothing more while packets were due, 2"), "{text}");
    let text = only_reason(&stalled(7), "file_slow");
    assert!(text.contains("7 packets were due before"), "{text}");
}

/// Two of our ports may be the ends of a path that only forwards: then all come as they were sent, and nobody told us his
/// address.
#[test]
fn a_path_between_our_ports_is_not_a_port_that_hears_another() {
    let heard = |as_sent, is_answered| Evidence {
        as_sent,
        is_answered,
        probes: 10,
        ..good()
    };
    valid(&heard(0, true));
    valid(&heard(10, false));
    only_reason(&heard(10, true), "heard_each_other");
    only_reason(&heard(9, false), "heard_each_other");
}
