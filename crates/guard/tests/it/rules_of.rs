//! The text of a rule means what the guard counts by.

use guard::{Event, Expired, Guard, Over, Sample, TICK_NS};
use proptest::prelude::*;
use rules::{Detail, Facts, Groups, Part, Verdict};

use crate::world::{SERVER, ip, parse, settings};

/// Some IPv4 packet, out of few values, so that rules are met.
fn facts() -> impl Strategy<Value = Facts> {
    let protocol = prop::sample::select(vec![1_u8, 6, 17, 47]);
    (protocol, 0_u8..3, 0..4_u32, 0..3_u16, 0..3_u16, 0..64_u8).prop_map(
        |(protocol, part, source, from, to, bits)| {
            let part = [Part::Whole, Part::First, Part::Later][usize::from(part)];
            let has_ports = part != Part::Later && [6, 17].contains(&protocol);
            let detail = match (protocol, part) {
                (_, Part::Later) => Detail::None,
                (6, _) => Detail::Flags(bits),
                (1, _) => Detail::Type(bits % 4),
                _ => Detail::None,
            };
            Facts {
                part,
                ports: has_ports.then_some((from, to)),
                detail,
                ..ip(
                    protocol,
                    u128::from(0x0A00_0000 + source * 0x0001_0001) << 96,
                    SERVER,
                )
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A flood of a few kinds of packets: what rules say of a packet is what the guard says that they met.
    #[test]
    fn text_and_count_agree(flood in prop::collection::vec(facts(), 1..4), others in prop::collection::vec(facts(), 1..20)) {
        let mut settings = settings();
        settings.cap.share = 1.0;
        let mut guard = Guard::new(settings, 1);
        let mut now_ns = 0;
        for _ in 0..6 {
            for at in 0..6000_u64 {
                let packet = Ok(flood[at as usize % flood.len()]);
                guard.observe(&Sample { packet: packet.into(), len: 60, weight: 1, time_ns: now_ns + at });
            }
            now_ns += TICK_NS;
            for event in guard.tick(now_ns) {
                // Only a wider one takes a rule's place so early.
                let is_quiet = matches!(event, Event::Expired(Expired { why: Over::Quiet, .. }));
                prop_assert!(!is_quiet);
            }
        }
        let text = guard.rules();
        let set = parse(&format!("{text}default allow\n"));
        prop_assert!(!text.is_empty());
        for facts in flood.iter().chain(&others) {
            let packet = Ok(*facts);
            let before: Vec<u64> = guard.in_force().map(|(_, packets, _)| packets).collect();
            guard.observe(&Sample { packet: packet.into(), len: 60, weight: 1, time_ns: now_ns });
            let met = guard.in_force().zip(before).position(|((_, now, _), before)| now > before);
            let first = set.rules.iter().position(|rule| rule.when.check(&packet).is_ok());
            prop_assert_eq!(met, first, "{:?}\n{}", facts, text);
            let decision = set.judge(&packet, now_ns, &mut Groups::default(), |_, _| {});
            prop_assert_eq!(decision.verdict == Verdict::Deny, met.is_some_and(|at| text.lines().nth(at).unwrap().starts_with("deny")));
        }
    }
}
