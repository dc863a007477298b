//! Who only looks as if they flooded many hosts: they are spared, and so is whoever is framed.

use guard::{Cap, Event, Settings};
use proptest::prelude::*;
use rules::{Facts, Groups, Verdict};

use crate::spread::{BAD, settled, to_anybody};
use crate::world::{Dice, World, ip, parse, settings, tcp, udp, v4};

/// Below the threshold of a host all together, and each with the rest of the world beside it.
#[test]
fn below_the_threshold_of_one_host_nobody_is_a_flood() {
    let mut world = settled(settings(), 4);
    world.go_on(10.0, 1_900, |dice| to_anybody(tcp(BAD, (1024, 23), 2), dice));
    assert_eq!(world.events, []);
}

/// In the names of a whole network, some of whose hosts are customers.
#[test]
fn a_network_in_whose_name_is_sent_is_not_cut_off() {
    let mut world = settled(settings(), 7);
    let framed = |dice: &mut Dice| {
        let source = v4([203, 0, dice.below(256) as u8, dice.below(256) as u8]);
        to_anybody(tcp(source, (32768 + dice.below(20000) as u16, 443), 2), dice)
    };
    world.go_on(3.0, 60_000, framed);
    assert!(world.blocked() > 0, "{:?}", world.events);
    world.forget();
    world.go_on(3.0, 60_000, framed);
    // No more passes than a network of this length may send.
    let passed = world.attack.sent - world.attack.dropped;
    assert!(
        passed <= 3 * 16 * 2000 * 11 / 10,
        "{passed} {}",
        world.guard.rules()
    );
    // No rule that denies holds somebody who was there; what is limited is limited for all.
    for line in world
        .guard
        .rules()
        .lines()
        .filter(|line| line.starts_with("deny"))
    {
        let set = parse(&format!("{line}\ndefault allow\n"));
        let mut dice = Dice(77);
        for _ in 0..20_000 {
            let (packet, is_always) = crate::world::usual(&mut dice);
            let verdict = set.judge(&packet, 0, &mut Groups::default(), |_, _| {}).verdict;
            assert!(!is_always || verdict == Verdict::Allow, "{line}: {packet:?}");
        }
    }
}

/// In the name of a peer, with what it sends itself: it is not denied.
#[test]
fn a_peer_in_whose_name_many_are_flooded_is_limited_and_not_denied() {
    let peer =
        |dice: &mut Dice| to_anybody(udp(v4([9, 9, 9, 9]), (53, 1024 + dice.below(60000) as u16)), dice);
    let mut world = settled(settings(), 8);
    world.go_on(3.0, 20_000, peer);
    assert!(
        world
            .guard
            .rules()
            .contains("rate 2000pps per source/32,128 udp sport 53 from 9.9.9.9\n"),
        "{}",
        world.guard.rules()
    );
    assert!(!world.guard.rules().contains("deny"), "{}", world.guard.rules());
}

/// Clients of a server: they have spoken with it for a while.
fn its_client(dice: &mut Dice) -> u128 {
    v4([172, 20, dice.below(2) as u8, dice.below(150) as u8])
}

#[test]
fn a_backup_that_begins_at_night_is_told_and_not_blocked() {
    let backup = |dice: &mut Dice| {
        Ok(Facts {
            destination: its_client(dice),
            ..tcp(v4([192, 0, 2, 99]), (873, 40000), 0x10)
        })
    };
    let mut world = World::new(settings(), 9);
    // It asks each of them now and then.
    world.go_on(60.0, 200, backup);
    world.go_on(20.0, 25_000, backup);
    assert_eq!(world.guard.rules(), "", "{:?}", world.events);
    let refused: Vec<&Event> = world
        .events
        .iter()
        .filter(|event| matches!(event, Event::Refused(_)))
        .collect();
    assert!(
        (1..=3).contains(&refused.len()),
        "it is said, and not ten times a second: {refused:?}"
    );
    let Event::Refused(refused) = refused[0] else {
        panic!()
    };
    assert_eq!(refused.refused.source.as_deref(), Some("192.0.2.99"));
    // What it sends to somebody else is a flood as of anybody.
    world.go_on(2.0, 25_000, |dice| {
        to_anybody(tcp(v4([192, 0, 2, 99]), (40000, 22), 2), dice)
    });
    assert!(
        world.guard.rules().ends_with("dport 22 from 192.0.2.99\n"),
        "{}",
        world.guard.rules()
    );
}

/// A content network that was busy when the guard came, has new clients all the time, and gets busier.
#[test]
fn who_has_always_sent_much_may_send_more() {
    let cdn = |dice: &mut Dice| {
        let host = dice.below(40_000)
            + if dice.below(10) == 0 {
                dice.below(1 << 20)
            } else {
                0
            };
        let destination = v4([172, 16 + (host >> 16) as u8, (host >> 8) as u8, host as u8]);
        Ok(Facts {
            destination,
            ..udp(v4([203, 0, 113, dice.below(3) as u8]), (443, 50000))
        })
    };
    let mut world = World::new(settings(), 10);
    world.go_on(35.0, 30_000, cdn);
    world.go_on(5.0, 60_000, cdn);
    assert_eq!(world.events, [], "{}", world.guard.rules());
}

/// Thousands behind one address: one of them floods.
#[test]
fn of_many_behind_one_address_only_the_flood_is_blocked() {
    let nat = v4([198, 51, 100, 1]);
    let users = move |dice: &mut Dice| {
        let host = dice.below(60);
        // Hosts of ours that are new to it come all the time.
        let destination = v4([172, 30, dice.below(4) as u8, host as u8]);
        let flags = if dice.below(3) == 0 { 2 } else { 0x10 };
        Ok(Facts {
            destination,
            ..tcp(nat, (1024 + dice.below(60000) as u16, 443), flags)
        })
    };
    let mut world = World::new(settings(), 11);
    world.go_on(60.0, 8_000, users);
    world.go_on(10.0, 12_000, users);
    assert_eq!(world.events, [], "{}", world.guard.rules());
    world.go_on(3.0, 40_000, move |dice| match dice.below(4) {
        0 => users(dice),
        _ => to_anybody(tcp(nat, (1024 + dice.below(60000) as u16, 23), 2), dice),
    });
    assert!(
        world.guard.rules().ends_with("dport 23 from 198.51.100.1\n"),
        "{}",
        world.guard.rules()
    );
    assert_eq!(world.guard.in_force().count(), 1, "{}", world.guard.rules());
}

#[test]
fn what_was_learned_of_sources_is_kept() {
    let resolver =
        |dice: &mut Dice| to_anybody(udp(v4([9, 9, 9, 9]), (53, 1024 + dice.below(60000) as u16)), dice);
    let mut world = World::new(settings(), 12);
    world.go_on(40.0, 6_000, resolver);
    assert_eq!(world.events, []);
    let text = serde_json::to_string(&world.guard.baseline()).unwrap();
    let baseline: guard::Baseline = serde_json::from_str(&text).unwrap();
    let mut next = World::new(settings(), 13);
    next.guard.learn(&baseline).unwrap();
    next.go_on(5.0, 8_000, resolver);
    assert_eq!(next.events, [], "{}", next.guard.rules());
    let mut much_more = World::new(settings(), 13);
    much_more.guard.learn(&baseline).unwrap();
    much_more.go_on(5.0, 60_000, resolver);
    assert_eq!(much_more.events, [], "whom it spoke with is not known yet");
    // With that it knows strangers from the start.
    next.go_on(1.0, 8_000, |dice| to_anybody(tcp(BAD, (1024, 23), 2), dice));
    assert!(
        next.guard.rules().ends_with("from 198.18.7.7\n"),
        "{}",
        next.guard.rules()
    );
    // A baseline that was written before there were sources.
    let older: guard::Baseline = serde_json::from_str(r#"{"version":1,"destinations":[{"destination":"192.0.2.1","learned_ns":1,"classes":[["udp",7,8]]}]}"#).unwrap();
    assert_eq!(
        (older.destinations[0].prefix.as_str(), older.sources.len()),
        ("192.0.2.1", 0)
    );
}

#[test]
fn caps_and_the_allow_list_hold_for_sources() {
    let attack =
        |dice: &mut Dice| to_anybody(tcp(v4([198, 18, 7, dice.below(256) as u8]), (1024, 23), 2), dice);
    let allowed = Settings {
        allowed: Some(rules::Tables::new(&parse("allow from 198.18.0.0/16\ndefault deny\n")).unwrap()),
        ..settings()
    };
    let mut world = settled(allowed, 14);
    world.go_on(3.0, 60_000, attack);
    assert_eq!(
        (world.guard.rules().as_str(), world.events.len()),
        ("", 0),
        "{:?}",
        world.events
    );
    for (cap, why) in [
        (
            Cap {
                share: 0.01,
                ..Cap::default()
            },
            "of all packets would be blocked",
        ),
        (
            Cap {
                v4_len: 32,
                ..Cap::default()
            },
            "",
        ),
    ] {
        let mut world = settled(Settings { cap, ..settings() }, 14);
        world.go_on(3.0, 60_000, attack);
        let rules = world.guard.rules();
        assert!(!rules.contains("/24") && !rules.contains("/16"), "{rules}");
        if !why.is_empty() {
            assert_eq!(rules, "");
            let is_told =
                |event: &Event| matches!(event, Event::Refused(refused) if refused.refused.why.contains(why));
            assert!(world.events.iter().any(is_told), "{:?}", world.events);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whoever floods whom with what: nobody who was there before is denied, no prefix is shorter than the cap, and a rule
    /// that names no destination names who sends it.
    #[test]
    fn whatever_is_sent_those_who_were_there_are_not_denied(
        (network, wide, to_wide) in (0_u32..4, 0_u32..20, 6_u32..22),
        (protocol, port, any_port) in (prop::sample::select(vec![1_u8, 6, 17, 47]), 1_u16..1000, any::<bool>()),
        (pps, seed) in (1_000_u64..60_000, 1_u64..1000),
    ) {
        // Next to the clients, among them, or elsewhere.
        let base = [0xCB00_0000_u32, 0xCB00_7100, 0x6440_0000, 0xC612_0707][network as usize];
        let attack = move |dice: &mut Dice| {
            let source = u128::from(base ^ dice.below(1 << wide) as u32) << 96;
            let destination = u128::from(0xAC10_0000 ^ dice.below(1 << to_wide) as u32) << 96;
            let ports = (if any_port { dice.below(65536) as u16 } else { 1024 }, port);
            let facts = match protocol {
                6 => tcp(source, ports, 2),
                17 => udp(source, ports),
                other => ip(other, source, 0),
            };
            Ok(Facts { destination, ..facts })
        };
        let mut world = settled(settings(), seed);
        world.go_on(3.0, pps, attack);
        let rules = world.guard.rules();
        for line in rules.lines() {
            prop_assert!(line.contains(" to ") || (line.contains(" from ") && !line.contains("from not")), "{}", line);
            let lens = line.split([' ', ',']).filter_map(|word| word.split_once('/')).filter_map(|(_, len)| len.parse::<u8>().ok());
            prop_assert!(lens.min().is_none_or(|len| len >= 16), "{}", line);
            if line.starts_with("deny") {
                let set = parse(&format!("{line}\ndefault allow\n"));
                let mut dice = Dice(seed);
                for _ in 0..5_000 {
                    let (packet, is_always) = crate::world::usual(&mut dice);
                    let verdict = set.judge(&packet, 0, &mut Groups::default(), |_, _| {}).verdict;
                    prop_assert!(!is_always || verdict == Verdict::Allow, "{} {:?}", line, packet);
                }
            }
        }
    }
}
