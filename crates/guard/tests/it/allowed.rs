//! What the allow-list meets passes before any rule of the guard: it floods nobody, and no rule meets it.

use guard::{Event, Guard, Sample, Settings, TICK_NS};
use rules::{Facts, Looked, Malformed, Tables};

use crate::world::{Dice, SECOND, World, parse, settings, tcp, udp, v4};

/// Who is allowed to send as much as it likes, and was not there before.
const PEER: u128 = v4([198, 18, 1, 1]);

fn allowing(text: &str) -> Settings {
    Settings {
        allowed: Some(Tables::new(&parse(&format!("{text}\ndefault deny\n"))).unwrap()),
        expire_ns: 5 * SECOND,
        ..settings()
    }
}

/// One of a thousand packets comes from somebody new.
fn peer_and_newcomer(dice: &mut Dice) -> Facts {
    match dice.below(1000) {
        0 => udp(v4([198, 51, 100, 9]), (4000, 7)),
        _ => udp(PEER, (5000, 6000)),
    }
}

#[test]
fn strangers_beside_an_allowed_flood_are_not_denied_for_it() {
    let mut world = World::new(allowing("allow from 198.18.1.1"), 1);
    world.quiet(20.0);
    world.go_on(5.0, 30_000, |dice| Ok(peer_and_newcomer(dice)));
    assert_eq!(
        (world.guard.rules().as_str(), &world.events[..]),
        ("", &[] as &[Event])
    );
}

#[test]
fn a_flood_beside_an_allowed_one_is_told_without_it() {
    let mut world = World::new(allowing("allow from 198.18.1.1"), 2);
    world.quiet(20.0);
    // A third of it is of strangers.
    world.go_on(3.0, 60_000, |dice| match dice.below(3) {
        0 => Ok(udp(dice.address(), (123, 7))),
        _ => Ok(peer_and_newcomer(dice)),
    });
    let [Event::Blocked(blocked)] = &world.events[..] else {
        panic!("{:?}", world.events)
    };
    assert!(
        blocked.made.rule.starts_with("deny udp sport 123") && blocked.made.rate_pps < 25_000,
        "{blocked:?}"
    );
}

#[test]
fn what_is_allowed_neither_counts_as_met_nor_prolongs_a_rule() {
    let mut world = World::new(allowing("allow from 198.18.1.1"), 3);
    world.quiet(20.0);
    world.go_on(2.0, 30_000, |dice| Ok(udp(dice.address(), (123, 7))));
    assert_eq!(world.guard.in_force().count(), 1, "{:?}", world.events);
    // It looks like what the rule is for.
    world.go_on(10.0, 30_000, |_| Ok(udp(PEER, (123, 7))));
    assert_eq!(world.guard.rules(), "", "the flood is long over");
    let gone = world.events.iter().find_map(|event| match event {
        Event::Expired(expired) => Some(expired.packets),
        _ => None,
    });
    assert!(gone.is_some_and(|packets| packets < 60_000), "{gone:?}");
}

#[test]
fn malformed_packets_that_are_allowed_are_no_flood() {
    for allowed in ["allow", "allow malformed", "allow malformed tcp-flags"] {
        let mut world = World::new(allowing(allowed), 4);
        world.quiet(2.0);
        world.go_on(2.0, 30_000, |_| Err(Malformed::TcpFlags));
        assert_eq!(world.guard.rules(), "", "{allowed}");
    }
    let mut world = World::new(allowing("allow malformed udp-length"), 4);
    world.quiet(2.0);
    world.go_on(2.0, 30_000, |_| Err(Malformed::TcpFlags));
    assert_eq!(world.guard.rules(), "deny malformed tcp-flags\n");
}

/// What is looked for on request only is nothing to a list that does not name it: it lets such packets of a peer pass.
#[test]
fn packets_that_are_malformed_only_to_who_asks_are_allowed_where_the_list_does_not_ask() {
    const RULE: &str = "deny malformed tcp-flags\n";
    let rules = |allowed: &str, source: u128| {
        let mut guard = Guard::new(allowing(allowed), 5);
        for tick in 0..20_u64 {
            for number in 0..6000_u64 {
                let packet = Looked {
                    plain: Ok(tcp(source, (1024, 23), 0)),
                    on_request: Malformed::TcpFlags.bit(),
                };
                guard.observe(&Sample {
                    packet,
                    len: 60,
                    weight: 1,
                    time_ns: tick * TICK_NS + number * TICK_NS / 6000,
                });
            }
            guard.tick((tick + 1) * TICK_NS);
        }
        guard.rules()
    };
    assert_eq!(rules("allow from 198.18.1.1", PEER), "");
    assert_eq!(rules("allow from 198.18.1.1", v4([198, 51, 100, 9])), RULE);
    // Whoever names it says what is meant by it.
    assert_eq!(
        rules("allow malformed tcp-flags\nallow from 198.18.1.1", PEER),
        ""
    );
    assert_eq!(rules("allow malformed land\nallow from 198.18.1.1", PEER), "");
}
