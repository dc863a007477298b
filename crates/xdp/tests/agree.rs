//! The program in the kernel decides as the reference does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    dead_code,
    reason = "this is a test"
)]

#[path = "../../rules/tests/it/frames.rs"]
mod frames;
#[path = "../../dropless/tests/polling/support/skip.rs"]
mod skip;

use std::sync::OnceLock;

use proptest::prelude::*;
use rules::{Tables, Verdict, look};
use xdp::{Error, Filter, Groups, Told};

/// Whether the kernel takes programs from us: else all is skipped.
fn may_load() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| {
        let tables = Tables::new(&frames::read("default allow").unwrap()).unwrap();
        match Filter::load(&tables, Groups::New(4), true) {
            Err(Error::Bpf { source, .. }) if source.kind() == libbpf_rs::ErrorKind::PermissionDenied => {
                skip::skip("needs leave to load BPF programs (root)");
                false
            }
            other => other.map(|_| true).unwrap(),
        }
    })
}

fn agree(text: &str, frames: &[(Vec<u8>, u64)]) {
    if !may_load() {
        return;
    }
    let set = frames::good(text);
    let tables = Tables::new(&set).unwrap();
    let filter = Filter::load(&tables, Groups::New(1 << 10), true).unwrap();
    let mut groups = rules::Groups::default();
    let mut now_ns = 1_000_000_000;
    for (frame, pause_ns) in frames.iter().filter(|(frame, _)| frame.len() >= 14) {
        now_ns += pause_ns;
        let packet = look(frame, frame.len(), set.reasons());
        let meant = set.judge(&packet, now_ns, &mut groups, |_, _| {});
        let meant = Told {
            is_allowed: meant.verdict == Verdict::Allow,
            rule: meant.rule.map_or(set.rules.len() as u32, u32::from),
            malformed: packet.err().map_or(0, |reason| reason as u32 + 1),
            is_full: false,
        };
        let found = filter.test(frame, now_ns).unwrap();
        assert_eq!(found, meant, "{packet:?} of {frame:02x?} under\n{text}");
    }
}

/// Others come and go before it, as those of a guard do before the user's own.
#[test]
fn a_rate_keeps_its_groups_wherever_it_stands_and_takes_over_no_others() {
    const OWN: &str = "rate 1pps per source burst 1 udp\n";
    if !may_load() {
        return;
    }
    let mut frame = vec![0; 60];
    frame[12..18].copy_from_slice(&[8, 0, 0x45, 0, 0, 28]);
    (frame[23], frame[39]) = (17, 8);
    let load = |text: &str, groups: Groups<'_>| {
        let tables = Tables::new(&frames::good(text)).unwrap();
        Filter::load(&tables, groups, true).unwrap()
    };
    let passes = |filter: &Filter| filter.test(&frame, 1_000_000_000).unwrap().is_allowed;
    let own = load(OWN, Groups::New(1 << 10));
    assert!(passes(&own), "its burst");
    let both = load(
        &format!("rate 1pps per source burst 1 udp dport 0\n{OWN}"),
        Groups::Of(&own),
    );
    assert!(!passes(&both), "it is above its rate still");
    let other = load("rate 1pps per source burst 1 udp dport 0-9\n", Groups::Of(&own));
    assert!(passes(&other), "one that was never there");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(frames::cases(50)))]

    #[test]
    fn on_every_packet(text in frames::rules(), frames in prop::collection::vec((frames::frame(), 0..400_000_000_u64), 1..300)) {
        agree(&text, &frames);
    }

    #[test]
    fn behind_the_header_of_a_fragment(offset in 0..3_u16, more: bool, len in 0..=12_usize) {
        let frame = frames::part_of_syn(offset, more, len);
        agree("deny tcp dport 22\ndeny malformed tiny-fragment\ndeny malformed\n", &[(frame, 0)]);
    }

    #[test]
    fn with_more_rules_than_a_word_has_bits(text in frames::rules_of(60..200), frames in prop::collection::vec((frames::frame(), 0..1_000_000_u64), 1..300)) {
        agree(&text, &frames);
    }
}
