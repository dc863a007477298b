//! The tables decide as the reference does.

use proptest::prelude::*;
use rules::limit::Limiter;
use rules::tables::Memo;
use rules::{Groups, Looked, Malformed, ON_REQUEST, Tables, is_cut, look};
use wire::checksum;

use crate::frames::{frame, good, narrow, part_of_syn, rules, rules_of};

fn agree(text: &str, frames: &[(Vec<u8>, u64)]) {
    let set = good(text);
    let tables = Tables::new(&set).unwrap();
    let (limiter, mut groups) = (Limiter::new(1 << 10, 7), Groups::default());
    let (again, mut memo) = (Limiter::new(1 << 10, 7), Memo::default());
    let (whole, mut by_header) = (Limiter::new(1 << 10, 7), Memo::default());
    let mut now_ns = 1_000_000_000;
    for (frame, pause_ns) in frames {
        now_ns += pause_ns;
        let packet = look(frame, frame.len(), set.reasons());
        let meant = set.judge(&packet, now_ns, &mut groups, |_, _| {});
        let found = tables.classify(frame, frame.len(), &limiter, now_ns);
        assert_eq!(found, meant, "{packet:?} of {frame:02x?} under\n{text}");
        let remembered = tables.decide_with(&mut memo, &packet, (&again, now_ns));
        assert_eq!(remembered, meant, "{packet:?} of {frame:02x?} under\n{text}");
        if let Some(recalled) = tables.recall(&by_header, frame) {
            assert_eq!(
                (recalled, None),
                (meant, packet.err()),
                "{packet:?} of {frame:02x?} under\n{text}"
            );
        }
        let judged = tables.judge(&mut by_header, (frame, frame.len()), (&whole, now_ns));
        assert_eq!(
            judged,
            (meant, packet.err()),
            "{packet:?} of {frame:02x?} under\n{text}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::frames::cases(1000)))]

    #[test]
    fn on_every_packet(text in rules(), frames in prop::collection::vec((frame(), 0..400_000_000_u64), 1..64)) {
        agree(&text, &frames);
    }

    #[test]
    fn with_more_rules_than_a_word_has_bits(text in rules_of(60..200), frames in prop::collection::vec((frame(), 0..1_000_000_u64), 1..64)) {
        agree(&text, &frames);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::frames::cases(1000)))]

    /// Of a packet that was not captured whole the same is found as of the whole one, or nothing.
    #[test]
    fn what_is_cut_is_judged_as_if_it_were_whole_or_not_at_all(frame in frame(), asks in any::<bool>()) {
        let asked = if asks { ON_REQUEST } else { 0 };
        let whole = look(&frame, frame.len(), asked);
        prop_assert!(!is_cut(&frame, frame.len(), &whole));
        for captured in 0..frame.len() {
            let found = look(&frame[..captured], frame.len(), asked);
            if !is_cut(&frame[..captured], frame.len(), &found) {
                prop_assert_eq!(found, whole, "{} of {:02x?}", captured, &frame);
            }
        }
    }
}

/// An SCTP packet that really has no ports is well-formed, and only what was not captured is cut.
#[test]
fn sctp_without_ports_is_cut_where_it_has_them() {
    for (payload, captured, cut) in [(12, 34, true), (12, 37, true), (12, 38, false), (3, 34, false)] {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 20 + payload, 0, 0, 0, 0, 64, 132, 0, 0]);
        frame.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        frame.extend([0, 1, 0x13, 0x88]);
        frame.resize(60, 0);
        let found = look(&frame[..captured], frame.len(), 0);
        let ports = found.map(|facts| facts.ports);
        assert_eq!(
            is_cut(&frame[..captured], frame.len(), &found),
            cut,
            "{captured} of {payload}"
        );
        assert_eq!(ports, Ok((captured >= 38).then_some((1, 5000))));
    }
    assert!(is_cut(&[2; 13], 60, &Err(Malformed::Ethernet)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::frames::cases(1000)))]

    #[test]
    fn what_was_looked_at_once_says_what_any_rules_would_find(frame in frame(), asked in any::<u16>()) {
        let found = Looked::at(&frame, frame.len()).asked(asked);
        prop_assert_eq!(found, look(&frame, frame.len(), asked), "{:02x?}", frame);
    }
}

/// What is wrong with headers that were captured is no work of the cut; what lies behind it may be.
#[test]
fn what_is_wrong_before_the_cut_is_wrong() {
    const LEN: usize = 400;
    let v4 = |protocol: u8, transport: [u8; 20], change: fn(&mut [u8])| {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 1, 0x82, 0, 0, 0, 0, 64, protocol, 0, 0]);
        frame.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        frame.extend(transport);
        change(&mut frame);
        let sum = checksum::field(checksum::sum(&frame[14..34]));
        frame[24..26].copy_from_slice(&sum);
        frame
    };
    let tcp = |offset: u8, flags: u8| {
        let mut header = [0; 20];
        (header[12], header[13]) = (offset << 4, flags);
        header
    };
    let extension = |more: usize| {
        let mut frame = vec![2; 12];
        frame.extend([0x86, 0xDD, 0x60, 0, 0, 0, 1, 90, 60, 64]);
        frame.extend([1; 16]);
        frame.extend([2; 16]);
        frame.extend([60, 0, 0, 0, 0, 0, 0, 0].repeat(more));
        frame
    };
    for (frame, found, cut) in [
        (v4(6, tcp(5, 2), |_| ()), None, false),
        (
            v4(6, tcp(5, 2), |frame| frame[16] = 9),
            Some(Malformed::IpLength),
            false,
        ),
        (
            v4(6, tcp(5, 2), |frame| frame[33] = 1),
            Some(Malformed::Land),
            false,
        ),
        (v4(6, tcp(5, 0), |_| ()), Some(Malformed::TcpFlags), false),
        (v4(6, tcp(4, 2), |_| ()), Some(Malformed::TcpHeader), false),
        (v4(17, [0; 20], |_| ()), Some(Malformed::UdpLength), false),
        (
            v4(6, tcp(5, 2), |frame| frame[21] = 1),
            Some(Malformed::TinyFragment),
            false,
        ),
        (
            v4(6, tcp(5, 2), |frame| frame[14] = 0x54),
            Some(Malformed::IpHeader),
            false,
        ),
        (extension(8), Some(Malformed::Extensions), false),
        (extension(7), Some(Malformed::Extensions), true),
        (
            v4(6, tcp(5, 2), |frame| frame[14] = 0x4F),
            Some(Malformed::IpHeader),
            true,
        ),
    ] {
        let said = look(&frame, LEN, ON_REQUEST);
        assert_eq!(said.err(), found, "{frame:02x?}");
        assert_eq!(is_cut(&frame, LEN, &said), cut, "{said:?} of {frame:02x?}");
    }
    let mut frame = v4(17, [0; 20], |_| ());
    frame[25] ^= 1;
    let said = look(&frame, LEN, ON_REQUEST);
    assert_eq!(said, Err(Malformed::IpChecksum));
    assert!(!is_cut(&frame, LEN, &said));
    // All that can be cut off a header behind those of IP.
    for (protocol, needs) in [(6, 20), (17, 8), (1, 8)] {
        let whole = v4(protocol, tcp(5, 2), |_| ());
        for captured in 34..34 + needs {
            let said = look(&whole[..captured], LEN, 0);
            assert!(is_cut(&whole[..captured], LEN, &said), "{captured} of {protocol}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::frames::cases(200)))]

    #[test]
    fn where_few_rules_are_asked_one_by_one(text in narrow(), frames in prop::collection::vec((frame(), 0..1_000_000_u64), 64..128)) {
        agree(&text, &frames);
    }
}

#[test]
fn with_more_words_than_a_summary_has_bits() {
    let mut text: String = (0..10_000_u32)
        .map(|rule| {
            format!(
                "deny from 10.{}.{}.{} udp dport {}\n",
                rule >> 10,
                rule >> 4 & 63,
                rule & 15,
                rule
            )
        })
        .collect();
    text += "deny tcp\n";
    let set = good(&text);
    assert_eq!(set.rules.len(), 10_001);
    let tables = Tables::new(&set).unwrap();
    let (limiter, mut memo) = (Limiter::new(1, 1), Memo::default());
    for rule in (0..10_000_u32).step_by(97) {
        let mut frame = vec![0; 42];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14..18].copy_from_slice(&[0x45, 0, 0, 28]);
        frame[23] = 17;
        frame[26..30].copy_from_slice(&[10, (rule >> 10) as u8, (rule >> 4 & 63) as u8, (rule & 15) as u8]);
        frame[36..38].copy_from_slice(&(rule as u16).to_be_bytes());
        frame[38..40].copy_from_slice(&[0, 8]);
        assert_eq!(
            tables.classify(&frame, frame.len(), &limiter, 0).rule,
            Some(rule as u16)
        );
        frame.resize(60, 0);
        assert_eq!(tables.recall(&memo, &frame), None);
        let (found, _) = tables.judge(&mut memo, (&frame, frame.len()), (&limiter, 0));
        assert_eq!(found.rule, Some(rule as u16));
        assert_eq!(tables.recall(&memo, &frame), Some(found));
        frame[37] ^= 1;
        assert_eq!(tables.classify(&frame, frame.len(), &limiter, 0).rule, None);
    }
}

/// Hosts look behind the Fragment header of a first fragment as behind any other, and deliver what is there.
#[test]
fn headers_behind_that_of_a_first_fragment_hide_nothing() {
    let text = "deny tcp dport 22\ndeny malformed tiny-fragment\ndefault allow\n";
    let set = good(text);
    let rule = |frame: &[u8]| {
        agree(text, &[(frame.to_vec(), 0)]);
        let packet = look(frame, frame.len(), set.reasons());
        set.judge(&packet, 0, &mut Groups::default(), |_, _| {}).rule
    };
    for more in [false, true] {
        assert_eq!(rule(&part_of_syn(0, more, 28)), Some(0));
    }
    assert_eq!(rule(&part_of_syn(0, true, 24)), Some(1), "it cuts TCP's header");
    assert_eq!(rule(&part_of_syn(1, false, 20)), None, "it says no ports");
}

/// Others come and go before it, as those of a guard do before the user's own.
#[test]
fn a_rate_keeps_its_groups_wherever_it_stands_and_takes_over_no_others() {
    const OWN: &str = "rate 1pps per source burst 1 udp\n";
    let limiter = Limiter::new(1 << 10, 7);
    let passes = |text: &str, number: u32| {
        let frame = from(number);
        let decision = Tables::new(&good(text))
            .unwrap()
            .classify(&frame, frame.len(), &limiter, 0);
        decision.verdict == rules::Verdict::Allow
    };
    assert!(passes(OWN, 1), "its burst");
    let both = format!("rate 1pps per source burst 1 udp dport 0\n{OWN}");
    assert!(!passes(&both, 1), "it is above its rate still");
    assert!(passes(&both, 2) && !passes(OWN, 2));
    assert!(
        passes("rate 1pps per source burst 1 udp dport 0-9\n", 1),
        "one that was never there"
    );
    // Each of two that are spelled alike counts for itself.
    assert!(passes(&OWN.repeat(2), 3));
}

/// A UDP frame whose source this number makes.
fn from(number: u32) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14..18].copy_from_slice(&[0x45, 0, 0, 28]);
    frame[23] = 17;
    frame[26..30].copy_from_slice(&number.to_be_bytes());
    frame[38..40].copy_from_slice(&[0, 8]);
    frame
}

#[test]
fn headers_that_never_come_again_are_soon_not_asked_for() {
    const BURST: u32 = 32;
    let tables = Tables::new(&good("deny from 10.0.0.0/8\n")).unwrap();
    let (limiter, mut memo) = (Limiter::new(1, 1), Memo::default());
    // How many of so many frames were asked for.
    let mut asked = |sources: &mut dyn Iterator<Item = u32>| {
        let (mut asked, mut all) = (0, 0);
        let sources: Vec<u32> = sources.collect();
        for burst in sources.chunks(BURST as usize) {
            let recalls = tables.recalls(&mut memo, burst.len());
            for source in burst {
                let frame = from(*source);
                all += 1;
                asked += u32::from(recalls);
                if recalls && tables.recall(&memo, &frame).is_none() {
                    tables.judge(&mut memo, (&frame, frame.len()), (&limiter, 0));
                }
            }
        }
        f64::from(asked) / f64::from(all)
    };
    assert!(asked(&mut (0..1 << 18)) < 0.1, "all are new");
    asked(&mut (0..1 << 15).map(|number| number % 100));
    assert!(
        asked(&mut (0..1 << 15).map(|number| number % 100)) > 0.99,
        "few come again and again"
    );

    let rated = Tables::new(&good("rate 10pps per source\n")).unwrap();
    assert!(
        !rated.recalls(&mut Memo::default(), 1),
        "each packet of a rate is a new case"
    );
}
