//! One source, or the network of one, that floods many hosts, each of which gets little.

use guard::{Event, Guard, Sample, Settings, TICK_NS};
use rules::{Facts, Layer};

use crate::world::{Dice, Packet, SECOND, World, ip, settings, tcp, udp, v4};

/// The attacker.
pub const BAD: u128 = v4([198, 18, 7, 7]);

/// Some host of a large network of ours: none of them, and no part of it, gets much.
fn anybody(dice: &mut Dice) -> u128 {
    v4([
        172,
        16 + dice.below(16) as u8,
        dice.below(256) as u8,
        dice.below(256) as u8,
    ])
}

#[allow(clippy::unnecessary_wraps, reason = "an attack may send what is malformed")]
pub fn to_anybody(facts: Facts, dice: &mut Dice) -> Packet {
    Ok(Facts {
        destination: anybody(dice),
        ..facts
    })
}

/// A world that has seen enough to judge sources.
pub fn settled(settings: Settings, seed: u64) -> World {
    let mut world = World::new(settings, seed);
    world.quiet(35.0);
    assert_eq!(world.events, [], "{seed}");
    world
}

/// Floods of many hosts, and the end of the rule that ends each.
type Attack = fn(&mut Dice) -> Packet;
const SPREAD: [(&str, u64, Attack, &str); 6] = [
    (
        "syn of a host",
        10_000,
        |dice| to_anybody(tcp(BAD, (1024 + dice.below(60000) as u16, 23), 2), dice),
        "dport 23 from 198.18.7.7\n",
    ),
    (
        "syn of a host to any port",
        10_000,
        |dice| to_anybody(tcp(BAD, (40000, dice.below(65536) as u16), 2), dice),
        "sport 40000 from 198.18.7.7\n",
    ),
    (
        "icmp of a host",
        8_000,
        |dice| to_anybody(ip(1, BAD, 0), dice),
        "deny icmp from 198.18.7.7\n",
    ),
    (
        "udp of a network",
        40_000,
        |dice| {
            let source = v4([198, 18, 7, dice.below(256) as u8]);
            to_anybody(udp(source, (5000, 161)), dice)
        },
        "deny udp sport 5000 dport 161 from 198.18.7.0/24\n",
    ),
    (
        "syn of a large network",
        60_000,
        |dice| {
            let source = v4([198, 18, dice.below(256) as u8, dice.below(256) as u8]);
            to_anybody(tcp(source, (1024, 8080), 2), dice)
        },
        "dport 8080 from 198.18.0.0/16\n",
    ),
    (
        "a host of IPv6 with many addresses",
        10_000,
        |dice| {
            Ok(Facts {
                layer: Layer::V6,
                ether_type: 0x86DD,
                source: 0x2001_0db8_0bad_0001 << 64 | u128::from(dice.below(1 << 40)),
                destination: 0x2001_0db8_0007 << 80 | u128::from(dice.below(1 << 20)) << 60 | 1,
                ..tcp(0, (1024, 23), 2)
            })
        },
        "dport 23 from 2001:db8:bad:1::/64\n",
    ),
];

#[test]
fn who_floods_many_hosts_is_blocked_by_its_prefix_and_nobody_else_is() {
    for (name, pps, attack, rule) in SPREAD {
        let expiring = Settings {
            expire_ns: 5 * SECOND,
            ..settings()
        };
        let mut world = settled(expiring, 3);
        world.go_on(1.0, pps, attack);
        assert!(
            world.guard.rules().ends_with(rule),
            "{name}: {:?} {}",
            world.events,
            world.guard.rules()
        );
        assert!(
            !world.guard.rules().contains(" to "),
            "{name}: {}",
            world.guard.rules()
        );
        let Some(Event::Blocked(blocked)) = world
            .events
            .iter()
            .find(|event| matches!(event, Event::Blocked(_)))
        else {
            panic!("{name}: {:?}", world.events)
        };
        assert!(
            blocked.made.source.is_some() && blocked.made.destination.is_none(),
            "{blocked:?}"
        );
        assert!(
            blocked
                .first_ns
                .is_some_and(|first| blocked.time_ns - first < SECOND),
            "{blocked:?}"
        );
        world.forget();
        world.go_on(2.0, pps, attack);
        assert_eq!(
            (world.always.dropped, world.new.dropped),
            (0, 0),
            "{name}: {}",
            world.guard.rules()
        );
        assert!(
            world.attack.dropped * 100 >= world.attack.sent * 98,
            "{name}: {:?} {}",
            world.attack,
            world.guard.rules()
        );
        world.quiet(10.0);
        assert_eq!(world.guard.rules(), "", "{name}: it expires");
    }
}

/// More bots than there may be rules: those that differ in who sends it become one.
#[test]
fn many_who_flood_many_are_blocked_by_few_rules() {
    let attack = |dice: &mut Dice| {
        let bot = dice.below(60) as u8;
        to_anybody(tcp(v4([20 + bot, bot, 7, 7]), (1024, 23), 2), dice)
    };
    let mut world = settled(settings(), 15);
    world.go_on(3.0, 150_000, attack);
    assert!(world.guard.in_force().count() <= 5, "{}", world.guard.rules());
    world.forget();
    world.go_on(1.0, 150_000, attack);
    assert!(
        world.attack.dropped * 100 >= world.attack.sent * 98,
        "{:?} {}",
        world.attack,
        world.guard.rules()
    );
    assert_eq!(world.always.dropped, 0, "{}", world.guard.rules());
}

#[test]
fn one_host_that_is_flooded_is_the_matter_of_its_own_rule() {
    let mut world = settled(settings(), 5);
    world.go_on(3.0, 20_000, |_| Ok(udp(BAD, (123, 9))));
    assert_eq!(world.guard.rules(), "deny udp sport 123 dport 9 to 192.0.2.1\n");
}

/// A hundred thousand sources a second, each with a packet or two: no prefix has sent what they sent together.
#[test]
fn invented_sources_blame_no_prefix_and_hide_nobody() {
    let spoofed = |dice: &mut Dice| to_anybody(udp(dice.address(), (dice.below(65536) as u16, 53)), dice);
    let mut world = settled(settings(), 6);
    world.go_on(3.0, 30_000, spoofed);
    assert!(!world.guard.rules().contains(" from "), "{}", world.guard.rules());
    let mut world = settled(settings(), 6);
    world.go_on(2.0, 100_000, spoofed);
    let places = world.guard.places();
    world.go_on(1.0, 100_000, spoofed);
    assert!(world.guard.places() <= places + places / 50);
    // One who hides among them.
    world.go_on(2.0, 100_000, |dice| match dice.below(10) {
        0 => to_anybody(tcp(BAD, (1024, 23), 2), dice),
        _ => spoofed(dice),
    });
    assert!(
        world.guard.rules().contains("dport 23 from 198.18.7.7\n"),
        "{}",
        world.guard.rules()
    );
    assert_eq!(world.always.dropped, 0, "{}", world.guard.rules());
}

/// What each sample stands for counts, not how many there are.
#[test]
fn samples_of_many_packets_are_enough() {
    let mut guard = Guard::new(settings(), 3);
    let mut dice = Dice(5);
    for tick in 0..320_u64 {
        let time_ns = tick * TICK_NS;
        for number in 0..if tick < 310 { 0 } else { 20 } {
            let packet = to_anybody(tcp(BAD, (1024, 23), 2), &mut dice);
            guard.observe(&Sample {
                packet: packet.into(),
                len: 60,
                weight: 64,
                time_ns: time_ns + number,
            });
        }
        guard.tick(time_ns + TICK_NS);
    }
    assert!(
        guard.rules().ends_with("dport 23 from 198.18.7.7\n"),
        "{}",
        guard.rules()
    );
}
