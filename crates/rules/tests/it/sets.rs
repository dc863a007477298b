//! Tries of many prefixes find what a linear search finds.

use proptest::prelude::*;
use rules::{Prefix, RuleSet, Tables};

use crate::frames::read;

fn prefixes(is_v6: bool) -> impl Strategy<Value = Vec<Prefix>> {
    // Few different bits, so that prefixes lie in each other.
    let one = (any::<[u8; 16]>(), 0..=128_u8, 0..4_usize).prop_map(move |(bytes, len, sparse)| {
        let mut bytes = bytes.map(|byte| byte & [0xFF, 0x81, 0x01, 0x00][sparse]);
        bytes[0] = if sparse == 0 { bytes[0] } else { 10 };
        let address: std::net::IpAddr = if is_v6 {
            bytes.into()
        } else {
            [bytes[0], bytes[1], bytes[2], bytes[3]].into()
        };
        Prefix::new(address, if is_v6 { len } else { len % 33 }).unwrap()
    });
    prop::collection::vec(one, 1..200)
}

fn rule_set(sets: &[Vec<Prefix>]) -> RuleSet {
    let lines = sets.iter().enumerate().map(|(number, set)| {
        let list: Vec<String> = set.iter().map(ToString::to_string).collect();
        format!(
            "{} from {}\n",
            if number % 2 == 0 { "deny" } else { "allow" },
            list.join(", ")
        )
    });
    read(&lines.collect::<String>()).unwrap()
}

/// Its first and last address, and those beside it.
fn around(prefix: &Prefix) -> [u128; 4] {
    let first = prefix.address();
    let last = first | u128::MAX.checked_shr(prefix.bits().into()).unwrap_or(0);
    [first, last, first.wrapping_sub(1), last.wrapping_add(1)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::frames::cases(200)))]

    #[test]
    fn as_one_by_one(is_v6: bool, sets in prop::collection::vec(prefixes(true), 1..4), more in prop::collection::vec(prefixes(false), 1..4), any in prop::collection::vec(any::<u128>(), 50)) {
        let set = rule_set(&[sets, more].concat());
        let table = Tables::new(&set).unwrap().source.unwrap();
        let bounds = set.rules.iter().flat_map(|rule| rule.when.source.as_ref().unwrap().of.iter());
        let near = bounds.flat_map(around);
        for address in near.chain(any) {
            let address = if is_v6 { address } else { address >> 96 << 96 };
            let row = table.row(address, is_v6);
            let meant = set.rules.iter().enumerate().fold(0, |all, (number, rule)| {
                let holds = rule.when.source.as_ref().unwrap().holds_address(address, is_v6);
                all | u64::from(holds) << number
            });
            prop_assert_eq!(row, &[meant][..], "{:x}", address);
        }
    }

    #[test]
    fn a_sorted_list_as_one_by_one(v4 in prefixes(false), v6 in prefixes(true), any in prop::collection::vec(any::<u128>(), 50)) {
        let mut sorted = [v4, v6].concat();
        sorted.sort_unstable();
        let near = sorted.iter().flat_map(around);
        for address in near.chain(any) {
            for (address, is_v6) in [(address, true), (address >> 96 << 96, false)] {
                let one_by_one = sorted.iter().any(|prefix| prefix.contains(address, is_v6));
                prop_assert_eq!(Prefix::any_contains(&sorted, address, is_v6), one_by_one, "{:x}", address);
            }
        }
    }
}
