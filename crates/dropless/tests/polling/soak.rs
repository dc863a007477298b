//! What `./dev soak` stands on: a seed is a round, and a packet that is missing is found.

#[allow(missing_docs, dead_code, reason = "what the soak has to itself, and uses")]
#[path = "../../benches/soak/balance.rs"]
mod balance;
#[allow(missing_docs, dead_code, reason = "what the soak has to itself, and uses")]
#[path = "../../benches/soak/plan.rs"]
mod plan;

use std::collections::BTreeSet;

use measure::ledger::{Arrived, Ledger, LedgerInput};
use measure::result::PortSummary;
use measure::summary::{ReflectSummary, Summary};
use measure::verdict::Validity;
use measure::{Balance, Place};

use balance::{Account, Missing};
use plan::{Kind, Plan, after};

#[test]
fn a_seed_is_always_the_same_round() {
    let (mut seed, mut kinds) = (1, BTreeSet::new());
    let mut plans = Vec::new();
    for _ in 0..2000 {
        let plan = Plan::draw(seed, None);
        assert_eq!(plan, Plan::draw(seed, None));
        kinds.insert(plan.kind);
        plans.push(plan);
        seed = after(seed);
    }
    assert_eq!(kinds, plan::drawn().collect(), "every kind has its turn");
    let rounds = plans.iter().map(|plan| {
        let seed = 0;
        format!("{:?}", Plan { seed, ..plan.clone() })
    });
    let rounds: BTreeSet<String> = rounds.collect();
    assert_eq!(rounds.len(), plans.len(), "seeds are rounds of their own");
    // As it was written down once: what failed is found again.
    let known = Plan::draw(1, None);
    assert_eq!(
        (known.kind, known.seconds, known.events.len()),
        (Kind::Stop, 5, 5)
    );
    for plan in plans.iter().filter(|plan| plan.is_wire() && !plan.is_xdp) {
        assert_eq!(
            plan.queues, 1,
            "a socket of the kernel has all of its wire: {plan:?}"
        );
    }
    let is_memif = |plan: &&Plan| !plan.is_wire() && !matches!(plan.kind, Kind::Ring | Kind::Null);
    for plan in plans.iter().filter(is_memif) {
        assert_eq!(plan.queues, 1, "the end that serves has one: {plan:?}");
    }
    for plan in plans.iter().filter(|plan| plan.kind == Kind::Capture) {
        let bytes = u64::from(plan.rate_kpps.unwrap_or(u32::MAX) * plan.seconds) * 1000 * 1518;
        assert!(bytes <= 1 << 30, "{plan:?}");
    }
}

/// A sender of a hundred packets of which so many came back, and whose places counted these.
fn sender(received: u64, places: &[(&str, u64)]) -> Summary {
    let arrived = Arrived {
        frames: received,
        received,
        ..Arrived::default()
    };
    let ledger = Ledger::balance(LedgerInput {
        intended: 100,
        accepted: 100,
        arrived,
        places: places
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect(),
        ..LedgerInput::default()
    });
    Summary {
        verdict: Validity::Valid,
        sent: 100,
        received,
        unexplained: ledger.unexplained,
        ledger,
        ports: vec![port(100, received)],
        ..Summary::default()
    }
}

fn port(tx_packets: u64, rx_packets: u64) -> PortSummary {
    PortSummary {
        tx_packets,
        rx_packets,
        ..PortSummary::default()
    }
}

fn account_of(sent: &Summary, missing: &Missing) -> Account {
    let mut account = Account::default();
    account.sender(sent, &[], missing);
    account
}

#[test]
fn a_packet_that_nobody_names_fails_the_round() {
    let whole = account_of(&sender(100, &[]), &Missing::Nothing);
    assert_eq!(
        (whole.problems.len(), whole.packets, whole.unexplained),
        (0, 100, 0),
        "{whole:?}"
    );
    let lost = account_of(&sender(99, &[]), &Missing::Nothing);
    assert_eq!((lost.problems.len(), lost.unexplained), (1, 1), "{lost:?}");
    let named = account_of(&sender(99, &[("rx_missed", 1)]), &Missing::Nothing);
    assert_eq!((named.problems.len(), named.unexplained), (0, 0), "{named:?}");
    assert_eq!(named.named["rx_missed"], 1);
    // A ledger that hides it is one that does not add up.
    let mut hidden = sender(99, &[]);
    hidden.ledger.unexplained = 0;
    hidden.unexplained = 0;
    assert_ne!(account_of(&hidden, &Missing::Nothing).problems.len(), 0);
}

#[test]
fn what_others_took_is_bounded() {
    let killed = account_of(&sender(90, &[]), &Missing::Killed(10));
    assert_eq!(
        (killed.problems.len(), killed.named["killed"], killed.unexplained),
        (0, 10, 0),
        "{killed:?}"
    );
    let more = account_of(&sender(89, &[]), &Missing::Killed(10));
    assert_eq!((more.problems.len(), more.unexplained), (1, 1), "{more:?}");
    let less = account_of(&sender(95, &[]), &Missing::Denied(10..=10));
    assert_eq!(
        less.problems.len(),
        1,
        "what was denied did not come back: {less:?}"
    );
}

#[test]
fn a_packet_between_two_ports_fails_the_round() {
    let far = |received: u64, returned: u64, places: &[(&'static str, u64)]| ReflectSummary {
        verdict: Validity::Valid,
        received,
        returned,
        ledger: Balance::of(
            received,
            returned,
            places.iter().map(|(name, count)| (Place::named(name), *count)),
        ),
        ports: vec![port(returned, received)],
        ..ReflectSummary::default()
    };
    let of = |near: &Summary, far: &ReflectSummary| {
        let mut account = Account::default();
        account.both_ends(near, far);
        account.problems
    };
    assert_eq!(of(&sender(100, &[]), &far(100, 100, &[])), Vec::<String>::new());
    assert_eq!(
        of(&sender(99, &[]), &far(100, 99, &[("fault_drop", 1)])),
        Vec::<String>::new()
    );
    // On the way there, on the way back, and within the reflector.
    assert_eq!(of(&sender(99, &[]), &far(99, 99, &[])).len(), 2);
    assert_eq!(of(&sender(99, &[]), &far(100, 100, &[])).len(), 1);
    assert_eq!(of(&sender(99, &[]), &far(100, 99, &[])).len(), 1);
}

#[test]
fn a_verdict_is_excused_for_what_was_done_and_nothing_else() {
    let mut sent = sender(100, &[]);
    sent.reasons = vec![measure::note::Note::new("link_lost", "a link was lost")];
    let of = |excused: &[&str]| {
        let mut account = Account::default();
        account.sender(&sent, excused, &Missing::Nothing);
        account.problems.len()
    };
    assert_eq!((of(&["link_lost"]), of(&["underoffered"])), (0, 1));
}
