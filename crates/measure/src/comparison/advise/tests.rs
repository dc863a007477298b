//! Recommendations from made-up measurements: the choice follows the numbers, whatever they are.

use super::*;
use crate::comparison::Cpu;
use crate::search::Limit;
use proptest::prelude::*;

fn measured(method: Method, lossless_pps: f64) -> MethodResult {
    let trial = Trial {
        asked_pps: Some(lossless_pps),
        sent: 1000,
        cpu: Some(Cpu {
            near_cores: 1.0,
            far_cores: Some(1.0),
            ..Cpu::default()
        }),
        ..Trial::default()
    };
    MethodResult {
        name: method.name().into(),
        words: method.words().into(),
        limit: Limit::Path,
        lossless_pps: Some(lossless_pps),
        at_lossless: Some(trial),
        cpu_ns_per_packet: Some(2e9 / lossless_pps),
        ..MethodResult::default()
    }
}

fn usual() -> Vec<MethodResult> {
    vec![
        measured(Method::Xdp, 3e6),
        measured(Method::Kernel, 4e5),
        measured(Method::KernelMmsg, 6e5),
        measured(Method::Packet, 5e5),
        measured(Method::Memif, 9e6),
    ]
}

fn chosen(results: &[MethodResult], wanted: f64) -> (Option<String>, String) {
    let advice = advise(results, Some(wanted), true, 1.0);
    (advice.method, advice.sentences.join("\n"))
}

#[test]
fn the_least_work_that_has_room_is_chosen() {
    for (wanted, method) in [(1e5, "kernel"), (3.5e5, "kernel-mmsg"), (1e6, "xdp")] {
        let (found, text) = chosen(&usual(), wanted);
        assert_eq!(found.as_deref(), Some(method), "{text}");
    }
}

#[test]
fn reasons_have_the_numbers_and_the_costs() {
    let (_, text) = chosen(&usual(), 3.5e5);
    for words in [
        "carried 600.0 kpps without a loss here, 1.7 times the 350.0 kpps",
        "Kernel sockets, one call a packet would be less work, but carried only 400.0 kpps, too close",
        "AF_XDP carried 3.000 Mpps, 5.0 times as much",
        "costs root to load a program",
        "2.0 cores busy",
        "virtual wire",
        "DPDK was measured without a NIC, between two processes: 9.000 Mpps",
    ] {
        assert!(text.contains(words), "{words:?} is missing in:\n{text}");
    }
}

#[test]
fn what_just_carries_it_is_named_with_a_warning() {
    let (found, text) = chosen(&usual(), 2.9e6);
    assert_eq!(found.as_deref(), Some("xdp"));
    assert!(text.contains("little room"), "{text}");
}

#[test]
fn sockets_that_are_near_are_tuned_first() {
    let (found, text) = chosen(&usual(), 9e5);
    assert_eq!(found.as_deref(), Some("xdp"));
    assert!(
        text.contains("Before you change the program") && text.contains("67 %"),
        "{text}"
    );
    let (_, far) = chosen(&usual(), 1.5e6);
    assert!(!far.contains("Before you change"), "{far}");
}

#[test]
fn where_nothing_will_do_the_best_is_named_with_what_is_missing() {
    let (found, text) = chosen(&usual(), 1e7);
    assert_eq!(found, None);
    assert!(
        text.contains("Nothing here carries 10.00 Mpps") && text.contains("30 % of it"),
        "{text}"
    );
    assert!(text.contains("5 times the cores"), "{text}");
}

#[test]
fn the_rule_of_thumb_yields_to_the_measurement() {
    // A slow machine: the rule says that the kernel is fine, and it is not.
    let slow = [measured(Method::Kernel, 5e4), measured(Method::Xdp, 5e5)];
    let (found, text) = chosen(&slow, 2e5);
    assert_eq!(found.as_deref(), Some("xdp"));
    assert!(
        text.contains("below 1 Mpps the kernel is fine") && text.contains("trust the measurement"),
        "{text}"
    );
    // A fast one: the rule says DPDK, and sockets do.
    let fast = [measured(Method::Kernel, 8e6), measured(Method::Xdp, 9e6)];
    let (found, text) = chosen(&fast, 3e6);
    assert_eq!(found.as_deref(), Some("kernel"));
    assert!(
        text.contains("above 2 Mpps it takes AF_XDP or DPDK") && text.contains("trust the measurement"),
        "{text}"
    );
}

#[test]
fn a_disturbed_measurement_says_so_first() {
    let advice = advise(&usual(), Some(1e5), true, 0.4);
    assert!(advice.sentences[0].contains("Measure again") && advice.sentences[0].contains("only 40 %"));
    assert_eq!(advice.method.as_deref(), Some("kernel"));
}

#[test]
fn a_rate_that_only_the_sender_limited_is_a_lower_bound() {
    let mut results = usual();
    for result in &mut results {
        result.limit = Limit::Sender;
    }
    let (_, text) = chosen(&results, 1e7);
    assert!(
        text.contains("at least 3.000 Mpps") && text.contains("The limit was our sender"),
        "{text}"
    );
}

#[test]
fn a_lower_bound_is_no_proof_that_nothing_is_faster() {
    let mut results = [measured(Method::Kernel, 59_520.0), measured(Method::Packet, 10e3)];
    results[1].limit = Limit::Sender;
    let (_, text) = chosen(&results, 1e4);
    assert!(
        text.contains("was not found out: AF_PACKET carried at least 10.00 kpps, and may carry more")
            && !text.contains("Nothing dearer"),
        "{text}"
    );
    let text = advise(&results, None, false, 1.0).sentences.join("\n");
    assert!(
        text.contains("worth their trouble was not found out: AF_PACKET") && !text.contains("Not worth"),
        "{text}"
    );
    results[1].limit = Limit::Path;
    let (_, text) = chosen(&results, 1e4);
    assert!(
        text.contains("Nothing dearer was faster here: AF_PACKET carried 10.00 kpps"),
        "{text}"
    );
}

/// Each a little more than the one before, and the last more than the first by what can be told.
#[test]
fn a_way_has_a_band_or_is_not_worth_its_trouble() {
    let ladder = [
        measured(Method::Kernel, 1e6),
        measured(Method::KernelMmsg, 1.08e6),
        measured(Method::Xdp, 1.15e6),
    ];
    let text = advise(&ladder, None, false, 1.0).sentences.join("\n");
    assert!(text.contains("Above that, up to 766.7 kpps: AF_XDP"), "{text}");
    let idle = text.lines().find(|line| line.starts_with("Not worth")).unwrap();
    assert!(!idle.contains("AF_XDP") && idle.contains("sendmmsg"), "{idle}");
}

#[test]
fn one_lucky_trial_is_no_capacity() {
    let mut results = usual();
    let lucky = Trial {
        asked_pps: Some(1e7),
        sent_pps: 1e7,
        sent: 1000,
        ..Trial::default()
    };
    results[0].at_rates.push(lucky);
    let (found, text) = chosen(&results, 1e7);
    assert_eq!(found, None);
    assert!(text.contains("At your rate AF_XDP lost nothing once"), "{text}");
}

#[test]
fn shared_memory_is_never_the_way_to_a_network() {
    let (found, text) = chosen(&[measured(Method::Memif, 9e6)], 1e5);
    assert_eq!(found, None);
    assert!(text.contains("No way to a network was measured"), "{text}");
    let nothing = MethodResult {
        lossless_pps: None,
        ..measured(Method::Xdp, 0.0)
    };
    let (found, text) = chosen(&[measured(Method::Memif, 9e6), nothing], 1e5);
    assert_eq!(found, None);
    assert!(text.contains("No way to a network carried anything"), "{text}");
}

#[test]
fn without_a_need_there_are_bands_in_order() {
    let advice = advise(&usual(), None, false, 1.0);
    assert_eq!(advice.method.as_deref(), Some("kernel"));
    let text = advice.sentences.join("\n");
    let place = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("{words:?} is missing in:\n{text}"))
    };
    assert!(
        place("Up to 266.7 kpps take kernel sockets, one call")
            < place("up to 400.0 kpps: kernel sockets with sendmmsg")
    );
    assert!(place("up to 400.0 kpps") < place("up to 2.000 Mpps: AF_XDP"));
    assert!(place("Not worth their trouble") < place("Above 2.000 Mpps nothing"));
    assert!(!text.contains("virtual wire"), "{text}");
}

proptest! {
    /// The choice carries what is needed whenever something does, and no way that is less work has the room.
    #[test]
    fn the_choice_follows_the_numbers(rates in prop::collection::vec(1e3..1e8_f64, 5), wanted in 1e3..1e8_f64) {
        let methods = [Method::Kernel, Method::KernelMmsg, Method::KernelUring, Method::Packet, Method::Xdp];
        let results: Vec<_> = methods.iter().zip(&rates).map(|(method, rate)| measured(*method, *rate)).collect();
        let advice = advise(&results, Some(wanted), true, 1.0);
        let chosen = advice.method.map(|name| methods.iter().position(|method| method.name() == name).unwrap());
        let roomy = rates.iter().position(|rate| *rate >= wanted * ROOM);
        let any = rates.iter().position(|rate| *rate >= wanted);
        prop_assert_eq!(chosen, roomy.or(any));
    }
}
