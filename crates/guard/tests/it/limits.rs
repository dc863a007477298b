//! What the guard must not be led to do.

use guard::{Cap, Event, Learn, Limit, Settings};
use rules::Facts;

use crate::world::{Dice, SECOND, World, parse, settings, tcp, udp, v4};

/// Packets of the server's own DNS server, in whose name an attacker sends.
fn in_the_name_of(dice: &mut Dice) -> Facts {
    udp(v4([9, 9, 9, 9]), (53, 1024 + dice.below(60000) as u16))
}

#[test]
fn a_peer_in_whose_name_is_sent_is_not_cut_off() {
    let mut world = World::new(settings(), 1);
    world.quiet(20.0);
    world.go_on(5.0, 30_000, |dice| Ok(in_the_name_of(dice)));
    let rules = world.guard.rules();
    assert!(
        rules.contains("rate ") && rules.contains(" per source/32,128") && !rules.contains("deny"),
        "{rules}"
    );
    let allowed = Settings {
        allowed: Some(rules::Tables::new(&parse("allow from 9.9.9.9\ndefault deny\n")).unwrap()),
        ..settings()
    };
    let mut world = World::new(allowed, 1);
    world.quiet(20.0);
    world.go_on(5.0, 30_000, |dice| Ok(in_the_name_of(dice)));
    assert_eq!(world.guard.rules(), "", "what is allowed is never blocked");
    assert_eq!(world.events, [], "nor is it a flood");
}

/// Strangers, behind a peer in whose name is sent and beside it: the rate of each source lets no flood of theirs pass.
#[test]
fn strangers_are_held_beside_a_peer_in_whose_name_is_sent() {
    let stranger = |dice: &mut Dice| {
        let source = dice.address();
        Ok(Facts {
            source,
            ..in_the_name_of(dice)
        })
    };
    for is_before in [false, true] {
        let mut world = World::new(settings(), 1);
        world.quiet(20.0);
        if is_before {
            world.go_on(5.0, 30_000, |dice| Ok(in_the_name_of(dice)));
        }
        let either = |dice: &mut Dice| {
            if dice.below(2) == 0 {
                Ok(in_the_name_of(dice))
            } else {
                stranger(dice)
            }
        };
        world.go_on(3.0, 60_000, either);
        world.forget();
        world.go_on(3.0, 60_000, either);
        let passed = world.attack.sent - world.attack.dropped;
        assert!(
            passed * 4 < world.attack.sent,
            "{passed} of {}: {}",
            world.attack.sent,
            world.guard.rules()
        );
    }
}

#[test]
fn an_attack_that_changes_all_the_time_is_met_by_a_wider_rule_that_costs_nothing() {
    for seed in 1..=3 {
        let mut world = World::new(settings(), seed);
        world.quiet(20.0);
        for turn in 0..30_u16 {
            world.go_on(1.0, 30_000, move |dice| {
                Ok(udp(dice.address(), (1000 + turn, 2000 + 7 * turn)))
            });
        }
        assert!(world.guard.in_force().count() <= 4, "{}", world.guard.rules());
        assert_eq!(
            (world.always.dropped, world.new.dropped),
            (0, 0),
            "{}",
            world.guard.rules()
        );
    }
}

#[test]
fn the_cap_holds() {
    let capped = Settings {
        cap: Cap {
            rules: 2,
            ..Cap::default()
        },
        ..settings()
    };
    let mut world = World::new(capped, 3);
    world.quiet(10.0);
    for turn in 0..6_u8 {
        world.go_on(2.0, 30_000, move |dice| {
            Ok(Facts {
                destination: v4([198, 51, turn, 1]),
                ..udp(dice.address(), (123, 7))
            })
        });
        assert!(world.guard.in_force().count() <= 2, "{}", world.guard.rules());
    }
    let is_told = |event: &Event| matches!(event, Event::Refused(refused) if refused.refused.why.contains("the cap is 2") && refused.refused.rule.is_some());
    assert!(world.events.iter().any(is_told), "{:?}", world.events);
    let little = Settings {
        cap: Cap {
            share: 0.5,
            ..Cap::default()
        },
        ..settings()
    };
    let mut world = World::new(little, 3);
    world.quiet(10.0);
    world.go_on(2.0, 60_000, |dice| Ok(udp(dice.address(), (123, 7))));
    assert_eq!(world.guard.rules(), "");
}

/// A flood of a machine that nobody else speaks to.
#[test]
fn a_flood_that_is_all_there_is_is_blocked() {
    let mut guard = guard::Guard::new(settings(), 3);
    for tick in 0..20_u64 {
        for number in 0..6000_u64 {
            guard.observe(&guard::Sample {
                packet: Ok(udp(v4([203, 0, tick as u8, number as u8]), (123, 7))).into(),
                len: 468,
                weight: 1,
                time_ns: tick * guard::TICK_NS + number * guard::TICK_NS / 6000,
            });
        }
        guard.tick((tick + 1) * guard::TICK_NS);
    }
    assert!(guard.rules().starts_with("deny udp"), "{}", guard.rules());
}

#[test]
fn no_source_prefix_is_shorter_than_the_cap_and_none_holds_a_known_source() {
    let mut world = World::new(settings(), 4);
    world.quiet(20.0);
    // Out of networks of known clients, 203.0.0.0/19.
    world.go_on(5.0, 60_000, |dice| {
        Ok(tcp(
            v4([203, 0, dice.below(64) as u8, dice.below(256) as u8]),
            (4000, 443),
            2,
        ))
    });
    assert_eq!(world.always.dropped, 0, "{}", world.guard.rules());
    for line in world
        .guard
        .rules()
        .lines()
        .filter(|line| line.starts_with("deny") && line.contains(" from "))
    {
        let lens = line
            .split([' ', ','])
            .filter_map(|word| word.split_once('/'))
            .map(|(_, len)| len.parse::<u8>());
        assert!(lens.flatten().all(|len| len >= 16), "{line}");
    }
}

#[test]
fn what_was_learned_counts_and_is_kept() {
    let learning = || Settings {
        learn: Some(Learn {
            after_ns: 10 * SECOND,
            factor: 4.0,
            floor_pps: 1000,
        }),
        ..Settings::default()
    };
    let mut world = World::new(learning(), 5);
    world.quiet(15.0);
    let baseline = world.guard.baseline();
    let text = serde_json::to_string(&baseline).unwrap();
    assert_eq!(serde_json::from_str::<guard::Baseline>(&text).unwrap(), baseline);
    // Of the usual 3,000 a second, 540 are UDP to 443 and 60 DNS: 5,000 are too much.
    world.go_on(1.0, 5000, |dice| Ok(udp(dice.address(), (123, 7))));
    assert_eq!(world.blocked(), 1, "{:?}", world.events);
    let mut next = World::new(learning(), 6);
    next.guard.learn(&baseline).unwrap();
    next.go_on(1.0, 5000, |dice| Ok(udp(dice.address(), (123, 7))));
    assert_eq!(next.blocked(), 1, "{:?}", next.events);
    let mut naive = World::new(learning(), 6);
    naive.go_on(1.0, 5000, |dice| Ok(udp(dice.address(), (123, 7))));
    assert_eq!(naive.blocked(), 0, "{:?}", naive.events);
}

#[test]
fn a_million_invented_sources_and_destinations_take_no_more_room() {
    let mut world = World::new(settings(), 8);
    world.quiet(20.0);
    let attack = |dice: &mut Dice| {
        Ok(Facts {
            destination: dice.address(),
            ..tcp(dice.address(), (dice.below(65536) as u16, 443), 2)
        })
    };
    world.go_on(1.0, 500_000, attack);
    let places = world.guard.places();
    world.go_on(1.0, 500_000, attack);
    assert!(
        world.guard.places() <= places + places / 50,
        "{places} {}",
        world.guard.places()
    );
    // Those who were there are still known: a flood of the server does not cost them anything.
    world.forget();
    world.go_on(3.0, 60_000, |dice| {
        Ok(tcp(dice.address(), (1024 + dice.below(60000) as u16, 443), 2))
    });
    assert!(world.blocked() > 0);
    assert_eq!(world.always.dropped, 0, "{}", world.guard.rules());
}

#[test]
fn a_limit_in_bits_counts_too() {
    let mut thresholds = settings().thresholds;
    thresholds.fill(Some(Limit {
        pps: None,
        bps: Some(20_000_000),
    }));
    let mut world = World::new(
        Settings {
            thresholds,
            ..settings()
        },
        2,
    );
    world.quiet(5.0);
    // A hundred bytes each.
    world.go_on(1.0, 20_000, |dice| Ok(udp(dice.address(), (123, 7))));
    assert!(world.blocked() == 0, "16 Mbit/s are not too much");
    world.go_on(1.0, 40_000, |dice| Ok(udp(dice.address(), (123, 7))));
    assert!(world.blocked() > 0, "32 Mbit/s are");
}

/// A time that nothing is known of is as if it had not been: no rule is taken back, nothing is learned, and what goes on
/// is found.
#[test]
fn a_pause_is_passed_over() {
    const PAUSE: u64 = 600 * SECOND;
    let ntp = |dice: &mut Dice| Ok(udp(dice.address(), (123, 7)));
    let mut world = World::new(settings(), 1);
    world.quiet(20.0);
    world.go_on(2.0, 30_000, ntp);
    assert_eq!(world.blocked(), 1);
    let usual = |world: &World| {
        let mut baseline = world.guard.baseline();
        baseline
            .destinations
            .retain(|learned| learned.prefix == "192.0.2.1/32");
        format!("{baseline:?}")
    };
    let before = usual(&world);
    world.now_ns += PAUSE;
    world.guard.pause(PAUSE);
    assert_eq!(usual(&world), before);
    // It would have gone in the first tick.
    world.go_on(30.0, 30_000, ntp);
    assert_eq!(world.blocked(), 1, "{:?}", world.events);
    assert_eq!(world.guard.in_force().count(), 1);
    world.quiet(61.0);
    assert_eq!(world.guard.in_force().count(), 0, "{}", world.guard.rules());
    // Another that begins unseen.
    world.now_ns += PAUSE;
    world.guard.pause(PAUSE);
    world.forget();
    world.go_on(1.0, 30_000, |dice| Ok(udp(dice.address(), (11211, 80))));
    assert_eq!(world.blocked(), 2, "{:?}", world.events);
    assert_eq!((world.always.dropped, world.new.dropped), (0, 0));
}
