//! The tables of a rule set as words, in the places that the program is told.

use rules::tables::{AddressTable, Do, IndexTable, Limit, Node, Poptrie};
use rules::{End, Tables, Verdict};

use crate::trie::{Addresses, SPANS};

/// A table that is not there.
const NONE: u32 = u32::MAX;
/// What the program calls the verdicts, and a rate.
const ALLOW: u32 = 0;
const DENY: u32 = 1;
const LIMIT: u32 = 2;

/// What the program's maps hold.
#[derive(Debug)]
pub(crate) struct Image {
    /// `struct layout`.
    pub(crate) layout: Vec<u8>,
    pub(crate) words: Vec<u64>,
    /// Roots and leaves of tries.
    pub(crate) slots: Vec<u32>,
    pub(crate) nodes: Vec<Node>,
    /// `struct rule`, one after the other.
    pub(crate) rules: Vec<u8>,
}

/// What tables do not say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Groups of rates, by fours: a power of two.
    pub(crate) buckets: u32,
    pub(crate) seed: u64,
    /// Every decision is told, and the time is given.
    pub(crate) tells: bool,
    /// Denied packets that are samples, a period and processor.
    pub(crate) denied_budget: u32,
    /// One of so many packets is a sample.
    pub(crate) every: u32,
    pub(crate) generation: u32,
}

impl Image {
    pub(crate) fn new(tables: &Tables, settings: Settings) -> Self {
        let mut image = Self {
            layout: Vec::new(),
            words: Vec::new(),
            slots: Vec::new(),
            nodes: Vec::new(),
            rules: tables
                .rules
                .iter()
                .flat_map(|it| rule(*it, &tables.rates))
                .collect(),
        };
        let rules = tables.rules.len() as u32;
        let row_words = rules.div_ceil(64).max(1);
        let stride = if row_words > 1 {
            row_words + row_words.div_ceil(64)
        } else {
            1
        };
        let head = [
            rules,
            row_words,
            stride,
            verdict(tables.default),
            u32::from(tables.reasons),
            settings.buckets,
            u32::from(settings.tells),
            tables.rates.len() as u32,
            settings.denied_budget,
            settings.every,
            settings.generation,
            0,
            0,
            0,
        ];
        image.put(&head);
        image.layout.extend(settings.seed.to_ne_bytes());
        image.layout.extend(denies(tables).to_ne_bytes());
        image.index(Some(&tables.malformed));
        for table in [
            &tables.kind,
            &tables.ether_type,
            &tables.vlan,
            &tables.detail,
            &tables.source_port,
            &tables.destination_port,
        ] {
            image.index(table.as_ref());
        }
        image.addresses(tables.source.as_ref(), stride);
        image.addresses(tables.destination.as_ref(), stride);
        let sizes = [image.words.len(), image.nodes.len(), image.slots.len()];
        let sizes = sizes.map(|len| (len as u32).to_ne_bytes());
        // The last of the head.
        let at = (head.len() - sizes.len()) * 4;
        image.layout[at..at + 12].copy_from_slice(sizes.as_flattened());
        // A structure is as long as a multiple of its widest member.
        image.layout.resize(image.layout.len().next_multiple_of(8), 0);
        image
    }

    fn put(&mut self, words: &[u32]) {
        self.layout
            .extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    }

    fn here(&self) -> u32 {
        self.words.len() as u32
    }

    fn index(&mut self, table: Option<&IndexTable>) {
        let Some(table) = table else {
            return self.put(&[NONE; 3]);
        };
        let classes = self.here();
        let four = |four: &[u16]| {
            four.iter()
                .rev()
                .fold(0, |word, class| word << 16 | u64::from(*class))
        };
        self.words.extend(table.classes.chunks(4).map(four));
        let rows = self.here();
        self.words.extend(table.rows.words());
        self.put(&[classes, u32::from(table.none), rows]);
    }

    fn addresses(&mut self, table: Option<&AddressTable>, stride: u32) {
        let Some(table) = table else {
            return self.put(&[NONE; 2 * TRIE + 2]);
        };
        let rows = self.here();
        self.words.extend(table.rows.words());
        let row = |class: u32| rows + class * stride;
        self.trie(&table.v4, true, row);
        self.trie(&table.v6, false, row);
        self.put(&[row(table.none), rows]);
    }

    /// `struct trie`.
    fn trie(&mut self, trie: &Poptrie, is_v4: bool, row: impl Fn(u32) -> u32) {
        let mut words = [NONE; TRIE];
        match Addresses::of(trie, is_v4, row) {
            Addresses::Spans { other, spans } => {
                words[4] = self.slots.len() as u32;
                words[5] = spans.len() as u32;
                self.slots.push(other);
                for (words, (first, rest, row)) in words[6..].chunks_exact_mut(2).zip(spans) {
                    words.copy_from_slice(&[first, rest]);
                    self.slots.push(row);
                }
            }
            Addresses::Trie(trie) => {
                words[0] = self.slots.len() as u32;
                words[1] = trie.root_bits;
                self.slots.extend(trie.root);
                if let Some([one, other]) = trie.two {
                    words[4] = self.slots.len() as u32;
                    self.slots.extend([other, one]);
                } else {
                    words[2] = self.slots.len() as u32;
                    self.slots.extend(trie.leaves);
                }
                words[3] = self.nodes.len() as u32;
                self.nodes.extend(trie.nodes);
            }
        }
        self.put(&words);
    }
}

/// Words of `struct trie`.
const TRIE: usize = 6 + 2 * SPANS;

/// A bit for each of the first rules that denies.
fn denies(tables: &Tables) -> u64 {
    let rules = tables.rules.iter().take(64).enumerate();
    let denying = rules.filter(|(_, rule)| matches!(rule, Do::Decide(Verdict::Deny)));
    denying.fold(0, |all, (place, _)| all | 1 << place)
}

const fn verdict(verdict: Verdict) -> u32 {
    match verdict {
        Verdict::Allow => ALLOW,
        Verdict::Deny => DENY,
    }
}

/// `struct rule`.
fn rule(rule: Do, rates: &[Limit]) -> Vec<u8> {
    let (action, limit) = match rule {
        Do::Decide(decided) => (verdict(decided), None),
        Do::Limit(at) => (LIMIT, rates.get(usize::from(at))),
    };
    let mask = |len: u8| {
        if len == 0 {
            0
        } else {
            u128::MAX << (128 - u32::from(len))
        }
    };
    let [mut every, mut early, mut v4, mut v6, mut of_destination] = [0_u128; 5];
    let number = limit.map_or(0, |limit| limit.number);
    if let Some(Limit { rate, interval, .. }) = limit {
        every = interval.every_ns.into();
        early = interval.early_ns.into();
        v4 = mask(rate.v4_len) >> 64;
        v6 = mask(rate.v6_len);
        of_destination = u128::from(rate.of == End::Destination);
    }
    let mut bytes = [action, number].map(u32::to_ne_bytes).concat();
    for word in [every, early, v4, v6 >> 64, v6] {
        bytes.extend((word as u64).to_ne_bytes());
    }
    bytes.extend((of_destination as u32).to_ne_bytes());
    bytes.extend([0; 4]);
    bytes
}

/// `struct node`.
pub(crate) fn node(node: &Node) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&node.children.to_ne_bytes());
    bytes[8..16].copy_from_slice(&node.leaves.to_ne_bytes());
    bytes[16..20].copy_from_slice(&node.first_child.to_ne_bytes());
    bytes[20..].copy_from_slice(&node.first_leaf.to_ne_bytes());
    bytes
}
