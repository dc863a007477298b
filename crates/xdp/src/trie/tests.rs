//! Tries of the program say of every address what those say that they are made of.

use proptest::prelude::*;
use rules::Tables;

use super::*;

/// As the program walks it.
fn row(of: &Addresses, address: u128) -> u32 {
    let trie = match of {
        Addresses::Spans { other, spans } => {
            let address = (address >> 96) as u32;
            let found = spans
                .iter()
                .find(|(first, rest, _)| address.wrapping_sub(*first) <= *rest);
            return found.map_or(*other, |(_, _, row)| *row);
        }
        Addresses::Trie(trie) => trie,
    };
    let mut at = trie.root[(address >> (128 - trie.root_bits)) as usize];
    let mut rest = address << trie.root_bits;
    while at & LEAF == 0 {
        let node = &trie.nodes[at as usize];
        let slot = (rest >> (128 - STEP_BITS)) as u32;
        let up_to = u64::MAX >> (63 - slot);
        if node.children >> slot & 1 == 0 {
            if let Some([one, other]) = trie.two {
                return if node.leaves >> slot & 1 != 0 { one } else { other };
            }
            let leaf = node.first_leaf + (node.leaves & up_to).count_ones() - 1;
            return trie.leaves[leaf as usize];
        }
        at = node.first_child + (node.children & up_to).count_ones() - 1;
        rest <<= STEP_BITS;
    }
    at & !LEAF
}

/// A prefix of either family, near others.
fn prefix() -> impl Strategy<Value = (u128, u32, bool)> {
    let address = prop_oneof![
        any::<u128>(),
        any::<u8>().prop_map(|low| 0x0A01_0000_u128 << 96 | u128::from(low) << 96),
        any::<u8>().prop_map(|low| 0x2001_0DB8_u128 << 96 | u128::from(low)),
    ];
    (address, 0..=128_u32, any::<bool>())
}

fn spelled((address, len, is_v6): &(u128, u32, bool)) -> String {
    let len = if *is_v6 { *len } else { len % 33 };
    let address = address & !u128::MAX.checked_shr(len).unwrap_or(0);
    if *is_v6 {
        format!("{}/{len}", std::net::Ipv6Addr::from(address))
    } else {
        format!("{}/{len}", std::net::Ipv4Addr::from((address >> 96) as u32))
    }
}

fn agree(prefixes: &[(u128, u32, bool)], more: &[u128], rules: usize) {
    // Several rules make several rows.
    let text: Vec<String> = prefixes
        .iter()
        .enumerate()
        .map(|(number, prefix)| {
            let action = ["deny", "allow"][number % 2];
            format!("{action} from {}\n", spelled(prefix))
        })
        .collect();
    let all: Vec<String> = prefixes.iter().map(spelled).collect();
    let text = if rules == 1 {
        format!("deny from {}\n", all.join(", "))
    } else {
        text.concat()
    };
    let set = rules::parse("test", &|_| Ok(text.clone())).unwrap();
    let tables = Tables::new(&set).unwrap();
    let Some(source) = &tables.source else { return };
    let ends = prefixes.iter().flat_map(|(address, len, is_v6)| {
        let len = if *is_v6 { *len } else { len % 33 };
        let rest = u128::MAX.checked_shr(len).unwrap_or(0);
        let (first, last) = (address & !rest, address | rest);
        [first, last, first.wrapping_sub(1), last.wrapping_add(1)]
    });
    let asked: Vec<u128> = ends.chain(more.iter().copied()).collect();
    for (trie, is_v4) in [(&source.v4, true), (&source.v6, false)] {
        let made = Addresses::of(trie, is_v4, |class| class + 7);
        for address in &asked {
            let address = if is_v4 { address >> 96 << 96 } else { *address };
            assert_eq!(
                row(&made, address),
                trie.class(address) + 7,
                "{address:x} under\n{text}"
            );
        }
    }
}

proptest! {
    #[test]
    fn of_one_rule(prefixes in prop::collection::vec(prefix(), 1..40), more in prop::collection::vec(any::<u128>(), 50)) {
        agree(&prefixes, &more, 1);
    }

    #[test]
    fn of_a_few(prefixes in prop::collection::vec(prefix(), 1..5), more in prop::collection::vec(any::<u128>(), 50)) {
        agree(&prefixes, &more, 1);
    }

    #[test]
    fn of_many_rules(prefixes in prop::collection::vec(prefix(), 1..40), more in prop::collection::vec(any::<u128>(), 50)) {
        agree(&prefixes, &more, 40);
    }
}

/// So many that the root is wide, of one rule and of several.
#[test]
fn of_many_prefixes() {
    let mut seed = 1_u128;
    let mut next = || {
        seed = seed.wrapping_mul(0xDA94_2042_E4DD_58B5).wrapping_add(0x9E37_79B9);
        (seed ^ seed >> 61).rotate_left(70)
    };
    let prefixes: Vec<(u128, u32, bool)> = (0..6000)
        .map(|number| (next(), 12 + number % 21, number % 4 == 0))
        .collect();
    let more: Vec<u128> = (0..10_000).map(|_| next()).collect();
    agree(&prefixes, &more, 1);
    let few_rules: Vec<_> = prefixes.chunks(2000).map(<[_]>::to_vec).collect();
    let text: Vec<String> = few_rules
        .iter()
        .map(|some| {
            let all: Vec<String> = some.iter().map(spelled).collect();
            format!("deny from {}\n", all.join(", "))
        })
        .collect();
    let set = rules::parse("test", &|_| Ok(text.concat())).unwrap();
    let source = Tables::new(&set).unwrap().source.unwrap();
    let made = Addresses::of(&source.v4, true, |class| class);
    assert!(matches!(&made, Addresses::Trie(trie) if trie.root_bits == WIDE_ROOT_BITS && trie.two.is_none()));
    for address in &more {
        let address = address >> 96 << 96;
        assert_eq!(row(&made, address), source.v4.class(address));
    }
}
