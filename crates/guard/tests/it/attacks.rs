//! Each kind of attack: found within a second, stopped, and what it costs.

use guard::Event;
use rules::{Detail, Facts, Layer, Malformed, Part};

use crate::world::{Dice, Packet, SERVER, USUAL, World, ip, settings, tcp, udp, v4};

type Attack = fn(&mut Dice) -> Packet;

/// Attacks that look like nothing that is usual: they are stopped by what they are, and nobody else's packet is dropped.
const STRANGE: [(&str, Attack, &str); 10] = [
    (
        "ntp",
        |dice| Ok(udp(dice.address(), (123, dice.below(65536) as u16))),
        "deny udp sport 123 to 192.0.2.1",
    ),
    (
        "memcached to one port",
        |dice| Ok(udp(dice.address(), (11211, 80))),
        "deny udp sport 11211 dport 80 to 192.0.2.1",
    ),
    (
        "echo replies",
        |dice| {
            Ok(Facts {
                detail: Detail::Type(0),
                ..ip(1, dice.address(), SERVER)
            })
        },
        "deny icmp type 0 to 192.0.2.1",
    ),
    (
        "later fragments",
        |dice| {
            Ok(Facts {
                part: Part::Later,
                ..ip(17, dice.address(), SERVER)
            })
        },
        "deny udp fragment to 192.0.2.1",
    ),
    (
        "gre",
        |dice| Ok(ip(47, dice.address(), SERVER)),
        "deny protocol 47 to 192.0.2.1",
    ),
    (
        "syn to another port",
        |dice| Ok(tcp(dice.address(), (dice.below(65536) as u16, 25), 2)),
        "dport 25",
    ),
    (
        "syn-ack",
        |dice| Ok(tcp(dice.address(), (443, dice.below(65536) as u16), 0x12)),
        "flags syn,ack/",
    ),
    (
        "udp to any port",
        |dice| Ok(udp(dice.address(), (1000, dice.below(65536) as u16))),
        "deny udp sport 1000 to 192.0.2.1",
    ),
    ("land", |_| Err(Malformed::Land), "deny malformed land"),
    (
        "ntp over a network",
        |dice| {
            Ok(Facts {
                destination: v4([198, 51, 100, dice.below(256) as u8]),
                ..udp(dice.address(), (123, 7))
            })
        },
        "deny udp sport 123 dport 7 to 198.51.100.0/24",
    ),
];

#[test]
fn what_is_strange_is_stopped_and_costs_nothing() {
    for (name, attack, rule) in STRANGE {
        for seed in 1..=2 {
            let mut world = World::new(settings(), seed);
            world.quiet(15.0);
            assert_eq!(world.blocked(), 0, "{name} {seed}: {:?}", world.events);
            world.go_on(1.0, 60_000, attack);
            assert!(world.blocked() > 0, "{name} {seed}: nothing was found");
            assert!(
                world.guard.rules().contains(rule),
                "{name} {seed}: {}",
                world.guard.rules()
            );
            world.go_on(1.0, 60_000, attack);
            world.forget();
            world.go_on(2.0, 60_000, attack);
            let (always, new, attack) = (world.always, world.new, world.attack);
            assert_eq!(
                (always.dropped, new.dropped),
                (0, 0),
                "{name} {seed}: {}",
                world.guard.rules()
            );
            assert!(
                attack.dropped * 100 >= attack.sent * 95,
                "{name} {seed}: {attack:?} {}",
                world.guard.rules()
            );
        }
    }
}

/// Each pulse is over before a second look, and the mean of all is far above what is too much.
#[test]
fn a_flood_in_pulses_is_found_and_a_burst_is_none() {
    let pulse = |dice: &mut Dice| Ok(tcp(dice.address(), (dice.below(65536) as u16, 25), 2));
    for (on, off) in [(0.1, 0.1), (0.1, 0.2), (0.1, 0.3), (0.1, 0.8)] {
        let mut world = World::new(settings(), 11);
        world.quiet(15.0);
        for _ in 0..2 {
            world.go_on(on, 60_000, pulse);
            world.quiet(off);
        }
        assert_eq!(world.blocked(), 0, "twice in peace: {:?}", world.events);
        for _ in 0..3 {
            world.go_on(on, 60_000, pulse);
            world.quiet(off);
        }
        assert!(world.blocked() > 0, "pulses of {on} s, {off} s apart");
        assert!(
            world.guard.rules().contains("dport 25"),
            "{}",
            world.guard.rules()
        );
    }
    let mut world = World::new(settings(), 12);
    for _ in 0..10 {
        world.go_on(0.1, 60_000, pulse);
        world.quiet(2.5);
    }
    assert_eq!(world.blocked(), 0, "{:?}", world.events);
}

/// Attacks that look as usual packets do, from many: those who were there before lose nothing.
const ALIKE: [(&str, Attack); 5] = [
    ("syn from anywhere", |dice| {
        Ok(tcp(dice.address(), (1024 + dice.below(60000) as u16, 443), 2))
    }),
    ("ack from anywhere", |dice| {
        Ok(tcp(dice.address(), (1024 + dice.below(60000) as u16, 443), 0x10))
    }),
    ("syn of a hundred bots", |dice| {
        Ok(tcp(
            v4([45, dice.below(10) as u8, 7, dice.below(10) as u8]),
            (1024 + dice.below(60000) as u16, 443),
            2,
        ))
    }),
    ("quic of one network", |dice| {
        Ok(udp(
            v4([45, 7, dice.below(256) as u8, dice.below(256) as u8]),
            (1024 + dice.below(60000) as u16, 443),
        ))
    }),
    ("dns answers", |dice| {
        Ok(udp(dice.address(), (53, 1024 + dice.below(60000) as u16)))
    }),
];

#[test]
fn what_looks_usual_is_stopped_and_those_who_were_there_lose_nothing() {
    for (name, attack) in ALIKE {
        for seed in 1..=2 {
            let mut world = World::new(settings(), seed);
            world.quiet(15.0);
            assert_eq!(world.blocked(), 0, "{name} {seed}: {:?}", world.events);
            world.go_on(1.0, 60_000, attack);
            assert!(world.blocked() > 0, "{name} {seed}: nothing was found");
            world.go_on(1.0, 60_000, attack);
            world.forget();
            world.go_on(2.0, 60_000, attack);
            let (always, new, attack) = (world.always, world.new, world.attack);
            assert_eq!(
                always.dropped,
                0,
                "{name} {seed}: {always:?} {}",
                world.guard.rules()
            );
            assert!(
                attack.dropped * 100 >= attack.sent * 80,
                "{name} {seed}: {attack:?} {}",
                world.guard.rules()
            );
            // Where sources are invented, new ones share a rate with the flood.
            let is_invented = name.contains("anywhere") || name.contains("dns");
            assert!(
                is_invented || new.dropped == 0,
                "{name} {seed}: {new:?} {}",
                world.guard.rules()
            );
        }
    }
}

#[test]
fn a_crowd_below_the_thresholds_is_no_flood() {
    let mut world = World::new(settings(), 5);
    world.quiet(5.0);
    // Three times the usual, of everything, and from new clients.
    world.go_on(20.0, 2 * USUAL, |dice| {
        let (packet, _) = crate::world::usual(dice);
        packet.map(|facts| Facts {
            source: if dice.below(2) == 0 {
                dice.address()
            } else {
                facts.source
            },
            ..facts
        })
    });
    assert!(world.events.is_empty(), "{:?}", world.events);
}

/// Somebody whom no usual packet comes from.
fn stranger(dice: &mut Dice) -> u128 {
    v4([
        11,
        dice.below(256) as u8,
        dice.below(256) as u8,
        dice.below(256) as u8,
    ])
}

#[test]
fn rules_go_one_by_one_when_the_flood_is_over() {
    let mut world = World::new(settings(), 7);
    world.quiet(10.0);
    let vectors = [(123, 1), (1900, 2), (389, 3)];
    for (source, to) in vectors {
        world.go_on(2.0, 30_000, move |dice| Ok(udp(stranger(dice), (source, to))));
    }
    assert_eq!(world.guard.in_force().count(), 3, "{}", world.guard.rules());
    // Prolonged while it is met.
    world.go_on(70.0, 30_000, |dice| Ok(udp(stranger(dice), (389, 3))));
    assert_eq!(world.guard.rules(), "deny udp sport 389 dport 3 to 192.0.2.1\n");
    let gone: Vec<u64> = world
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Expired(expired) => Some(expired.time_ns),
            _ => None,
        })
        .collect();
    assert_eq!(gone.len(), 2);
    assert!(gone[1] - gone[0] >= 1_000_000_000, "{gone:?}");
    world.quiet(75.0);
    assert_eq!(world.guard.rules(), "");
    let Some(Event::Expired(last)) = world.events.last() else {
        panic!("{:?}", world.events)
    };
    assert!(
        last.packets >= 70 * 30_000 * 9 / 10 && last.known_packets == 0,
        "{last:?}"
    );
}

#[test]
fn over_ipv6_too() {
    let mut world = World::new(settings(), 9);
    world.quiet(5.0);
    let server = 0x2001_0db8 << 96 | 1;
    let attack = move |dice: &mut Dice| {
        let source = 0x2001_0db8_0007 << 80 | u128::from(dice.below(1 << 40));
        Ok(Facts {
            layer: Layer::V6,
            ether_type: 0x86DD,
            source,
            destination: server,
            ..udp(0, (7, 9))
        })
    };
    world.go_on(2.0, 60_000, attack);
    assert_eq!(world.guard.rules(), "deny udp sport 7 dport 9 to 2001:db8::1\n");
}

/// Known clients, more of them than a rule can name, flood: strangers are not held to the rate that these get, and count.
#[test]
fn a_rate_of_many_known_sources_meets_no_stranger() {
    let client = |dice: &mut Dice| {
        let number = dice.below(3000);
        Ok(udp(v4([10, 7, (number >> 8) as u8, number as u8]), (5000, 77)))
    };
    let mut world = World::new(settings(), 12);
    world.go_on(20.0, 3000, client);
    world.go_on(3.0, 60_000, client);
    let rules = world.guard.rules();
    let each: Vec<&str> = rules
        .lines()
        .filter(|rule| rule.contains("per source/32,128"))
        .collect();
    assert!(!each.is_empty(), "{rules}");
    for rule in each {
        let (_, named) = rule.split_once(" from ").unwrap_or_else(|| panic!("{rule}"));
        let named = named.split(' ').next().unwrap_or_default();
        assert!(
            named.split(',').all(|source| source.starts_with("10.7.")),
            "{rule}"
        );
        assert!(named.split(',').count() <= 1024, "{rule}");
    }
}

/// A flood of invented sources beside more known ones than a rule can spare: how many share the rate is told.
#[test]
fn known_sources_that_a_rate_cannot_spare_are_counted() {
    let client = |dice: &mut Dice| {
        let number = dice.below(1500);
        Ok(udp(v4([10, 7, (number >> 8) as u8, number as u8]), (5000, 77)))
    };
    let mut world = World::new(settings(), 13);
    world.go_on(20.0, 3000, client);
    world.go_on(3.0, 60_000, |dice| Ok(udp(dice.address(), (5000, 77))));
    let made: Vec<_> = world
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Blocked(blocked) => Some(&blocked.made),
            _ => None,
        })
        .filter(|made| made.rule.contains(" from not "))
        .collect();
    assert!(!made.is_empty(), "{}", world.guard.rules());
    // Beside these 200 clients of the usual traffic are known, and up to 1,200 who came once.
    assert!(
        made.iter().all(|made| (676..=1876).contains(&made.unspared)),
        "{:?}",
        made[0].unspared
    );
}
