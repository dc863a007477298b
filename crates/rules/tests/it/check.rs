//! Rules that are never met.

use proptest::prelude::*;
use rules::check::{Never, never};
use rules::{Groups, look};

use crate::frames::{frame, good, read, rules_of};

fn found(text: &str) -> Vec<(usize, Never)> {
    never(&read(text).unwrap())
}

#[test]
fn finds_what_is_covered() {
    for (text, expected) in [
        (
            "deny from 10.0.0.0/8\nallow from 10.1.0.0/16",
            vec![(1, Never::Behind(0))],
        ),
        ("allow from 10.1.0.0/16\ndeny from 10.0.0.0/8", vec![]),
        // Both halves of what follows.
        (
            "deny from 10.0.0.0/9,10.128.0.0/9\nallow from 10.0.0.0/8 tcp",
            vec![(1, Never::Behind(0))],
        ),
        (
            "deny from not 10.0.0.0/8\nallow from 192.0.2.0/24",
            vec![(1, Never::Behind(0))],
        ),
        ("deny from 10.0.0.0/8\nallow from not 192.0.2.0/24", vec![]),
        ("deny tcp\nallow flags syn", vec![(1, Never::Behind(0))]),
        (
            "deny dport 0-65535\nallow udp dport 53 whole",
            vec![(1, Never::Behind(0))],
        ),
        ("deny dport 0-65535\nallow udp", vec![]),
        ("deny ip\nallow from 2001:db8::/32", vec![(1, Never::Behind(0))]),
        ("deny ip4\nallow from 2001:db8::/32, 10.0.0.1", vec![]),
        ("deny ip4\nallow ip4\nallow ip6", vec![(1, Never::Behind(0))]),
        ("rate 1pps per source\nallow", vec![]),
        (
            "allow\ndeny malformed\ndeny tcp",
            vec![(1, Never::Behind(0)), (2, Never::Behind(0))],
        ),
        (
            "deny malformed\ndeny malformed land\ndeny",
            vec![(1, Never::Behind(0))],
        ),
        ("allow ip4 from 2001:db8::/32", vec![(0, Never::Impossible)]),
        ("allow from 10.0.0.1 to 2001:db8::1", vec![(0, Never::Impossible)]),
        ("allow fragment later flags syn", vec![(0, Never::Impossible)]),
        ("allow tcp sport not 0-65535", vec![(0, Never::Impossible)]),
        // Extension headers of IPv6 are looked through, but in later fragments.
        ("deny ip6 ah", vec![(0, Never::LookedThrough)]),
        ("deny ah from 2001:db8::/32", vec![(0, Never::LookedThrough)]),
        ("deny ip6 protocol 0,43,44,51,60", vec![(0, Never::LookedThrough)]),
        ("deny ip6 ah whole", vec![(0, Never::Impossible)]),
        ("deny ip6 ah fragment first", vec![(0, Never::Impossible)]),
        (
            "deny ip6 ah fragment later\ndeny ah\ndeny ip6 protocol 51,6\ndeny ip4 ah whole",
            vec![(3, Never::Behind(1))],
        ),
        (
            "deny vlan 0-4095\nallow vlan 7\nallow untagged",
            vec![(1, Never::Behind(0))],
        ),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::frames::cases(300)))]

    #[test]
    fn what_is_never_met_decides_about_no_packet(text in rules_of(2..30), frames in prop::collection::vec(frame(), 1..64)) {
        let set = good(&text);
        let never = never(&set);
        for frame in frames {
            let packet = look(&frame, frame.len(), set.reasons());
            let rule = set.judge(&packet, 0, &mut Groups::default(), |_, _| {}).rule;
            prop_assert!(never.iter().all(|(number, _)| rule != Some(*number as u16)), "{rule:?} of {never:?} under\n{text}");
        }
    }
}
