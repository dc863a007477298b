//! The tables of a rule set as words, in the places that the program is told.

use rules::tables::{AddressTable, Do, IndexTable, Node, Poptrie};
use rules::{End, Tables, Verdict};

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
            nodes: Vec::new(),
            rules: tables.rules.iter().flat_map(rule).collect(),
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
            tables
                .rules
                .iter()
                .filter(|rule| matches!(rule, Do::Limit(..)))
                .count() as u32,
            settings.denied_budget,
            settings.every,
            settings.generation,
            0,
            0,
            0,
        ];
        image.put(&head);
        image.layout.extend(settings.seed.to_ne_bytes());
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
        image.addresses(tables.source.as_ref());
        image.addresses(tables.destination.as_ref());
        let sizes = [image.words.len(), image.nodes.len()].map(|len| (len as u32).to_ne_bytes());
        // Before the last, which is not used.
        let at = (head.len() - 1 - sizes.len()) * 4;
        image.layout[at..at + 8].copy_from_slice(sizes.as_flattened());
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

    fn addresses(&mut self, table: Option<&AddressTable>) {
        let Some(table) = table else {
            return self.put(&[NONE; 8]);
        };
        self.trie(&table.v4);
        self.trie(&table.v6);
        let rows = self.here();
        self.words.extend(table.rows.words());
        self.put(&[table.none, rows]);
    }

    fn trie(&mut self, trie: &Poptrie) {
        let two = |two: &[u32]| {
            two.iter()
                .rev()
                .fold(0, |word, half| word << 32 | u64::from(*half))
        };
        let root = self.here();
        self.words.extend(trie.root.chunks(2).map(two));
        let leaves = self.here();
        self.words.extend(trie.leaves.chunks(2).map(two));
        let nodes = self.nodes.len() as u32;
        self.nodes.extend(&trie.nodes);
        self.put(&[root, leaves, nodes]);
    }
}

const fn verdict(verdict: Verdict) -> u32 {
    match verdict {
        Verdict::Allow => ALLOW,
        Verdict::Deny => DENY,
    }
}

/// `struct rule`.
fn rule(rule: &Do) -> Vec<u8> {
    let (action, number, rest) = match rule {
        Do::Decide(decided) => (verdict(*decided), 0, None),
        Do::Limit(number, rate, interval) => (LIMIT, *number as u32, Some((rate, interval))),
    };
    let mask = |len: u8| {
        if len == 0 {
            0
        } else {
            u128::MAX << (128 - u32::from(len))
        }
    };
    let [mut every, mut early, mut v4, mut v6, mut of_destination] = [0_u128; 5];
    if let Some((rate, interval)) = rest {
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
