//! The table of addresses: prefixes of both families, and the rules that each address fulfils.

use std::collections::HashMap;
use std::sync::Arc;

use super::poptrie::{Entry, Poptrie};
use super::rows::{Gather, Rows, set};
use super::{BYTES_MAX, TooLarge};
use crate::Prefix;
use crate::rule::Choice;

/// Addresses, each with its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressTable {
    /// IPv4 addresses.
    pub v4: Poptrie,
    /// IPv6 addresses.
    pub v6: Poptrie,
    /// The row of packets that have no address.
    pub none: u32,
    /// All rows.
    pub rows: Rows,
}

impl AddressTable {
    /// The row of an address.
    #[inline]
    pub fn row(&self, address: u128, is_v6: bool) -> &[u64] {
        self.rows.row(self.class(address, is_v6))
    }

    /// Which row that is.
    #[inline]
    pub(super) fn class(&self, address: u128, is_v6: bool) -> u32 {
        let trie = if is_v6 { &self.v6 } else { &self.v4 };
        trie.class(address)
    }

    /// `None` if no rule asks.
    pub(super) fn new(asked: &[Option<&Choice<Prefix>>]) -> Result<Option<Self>, TooLarge> {
        if asked.iter().all(Option::is_none) {
            return Ok(None);
        }
        let sets = Sets::of(asked);
        let mut classes = Classes::default();
        let mut entries = [Vec::new(), Vec::new()];
        for (atom, set) in sets.all.iter().enumerate() {
            for prefix in set.iter() {
                entries[usize::from(prefix.is_v6())].push(Entry {
                    address: prefix.address(),
                    len: prefix.bits(),
                    atom: atom as u32,
                });
            }
        }
        let [v4, v6] = entries.map(|mut entries| {
            entries.sort_unstable_by_key(|entry| (entry.address, entry.len, entry.atom));
            Poptrie::new(&entries, 0, &mut |class, atom| classes.within(class, atom))
        });
        let bytes = |trie: &Poptrie| trie.nodes.len() * 24 + trie.leaves.len() * 4;
        if bytes(&v4) + bytes(&v6) > BYTES_MAX {
            return Err(TooLarge);
        }
        let mut table = Self {
            v4,
            v6,
            none: 0,
            rows: Gather::new(asked.len()).finish(),
        };
        table.rows = table.number_rows(asked, &sets, &classes)?;
        Ok(Some(table))
    }

    /// Makes the rows of all classes, and has the tries name them.
    fn number_rows(
        &mut self,
        asked: &[Option<&Choice<Prefix>>],
        sets: &Sets,
        classes: &Classes,
    ) -> Result<Rows, TooLarge> {
        let mut gather = Gather::new(asked.len());
        let mut none = gather.blank();
        let mut outside = gather.blank();
        for (rule, choice) in asked.iter().enumerate() {
            set(&mut none, rule, choice.is_none());
            set(&mut outside, rule, choice.is_none_or(|choice| choice.not));
        }
        let mut numbers = Vec::with_capacity(classes.all.len());
        for atoms in &classes.all {
            let mut row = outside.clone();
            for rule in atoms.iter().flat_map(|atom| &sets.rules[*atom as usize]) {
                set(&mut row, *rule, asked[*rule].is_some_and(|choice| !choice.not));
            }
            numbers.push(gather.add(&row)?);
        }
        self.none = gather.add(&none)?;
        for trie in [&mut self.v4, &mut self.v6] {
            trie.renumber(&numbers);
        }
        Ok(gather.finish())
    }
}

/// Every different set, and which rules ask for it.
struct Sets<'r> {
    all: Vec<&'r Arc<Vec<Prefix>>>,
    rules: Vec<Vec<usize>>,
}

impl<'r> Sets<'r> {
    fn of(asked: &[Option<&'r Choice<Prefix>>]) -> Self {
        let mut sets = Self {
            all: Vec::new(),
            rules: Vec::new(),
        };
        // Rules that name one set share it; small ones that are alike are found by what they hold.
        let mut known: HashMap<&[Prefix], usize> = HashMap::new();
        let mut shared: HashMap<*const Vec<Prefix>, usize> = HashMap::new();
        for (rule, choice) in asked.iter().enumerate() {
            let Some(choice) = choice else { continue };
            let atom = match shared.get(&Arc::as_ptr(&choice.of)) {
                Some(atom) => *atom,
                None => *known.entry(&choice.of).or_insert_with(|| {
                    sets.all.push(&choice.of);
                    sets.rules.push(Vec::new());
                    sets.all.len() - 1
                }),
            };
            shared.insert(Arc::as_ptr(&choice.of), atom);
            sets.rules[atom].push(rule);
        }
        sets
    }
}

/// Sets of atoms, each a class; class 0 is in none.
struct Classes {
    all: Vec<Vec<u32>>,
    known: HashMap<Vec<u32>, u32>,
    /// The class that a class becomes within an atom.
    steps: HashMap<(u32, u32), u32>,
}

impl Default for Classes {
    fn default() -> Self {
        Self {
            all: vec![Vec::new()],
            known: HashMap::from([(Vec::new(), 0)]),
            steps: HashMap::new(),
        }
    }
}

impl Classes {
    fn within(&mut self, class: u32, atom: u32) -> u32 {
        if let Some(found) = self.steps.get(&(class, atom)) {
            return *found;
        }
        let mut atoms = self.all[class as usize].clone();
        if let Err(place) = atoms.binary_search(&atom) {
            atoms.insert(place, atom);
        }
        let all = &mut self.all;
        let found = *self.known.entry(atoms).or_insert_with_key(|atoms| {
            all.push(atoms.clone());
            all.len() as u32 - 1
        });
        self.steps.insert((class, atom), found);
        found
    }
}

impl Poptrie {
    /// Gives every class the number that `numbers` has for it.
    fn renumber(&mut self, numbers: &[u32]) {
        for leaf in &mut self.leaves {
            *leaf = numbers[*leaf as usize];
        }
        for word in &mut self.root {
            if *word & super::LEAF != 0 {
                *word = super::LEAF | numbers[(*word & !super::LEAF) as usize];
            }
        }
    }
}
