//! Tries of addresses as the program walks them: as few loads that wait for each other as there can be.
//!
//! What differs from the tries of `rules`, which it is made of: a few spans of addresses need no trie; many of them have a
//! wider root, so that prefixes of up to 24 bits need one step; and where addresses have one of two rows, as with a list of
//! bad ones, the nodes say which by a bit, and there are no leaves to look into.

use rules::tables::{Node, Poptrie};

#[cfg(test)]
mod tests;

/// Bits of the address that a node takes.
const STEP_BITS: u32 = rules::tables::STEP_BITS;
/// In a slot: the rest is a row, not a node.
const LEAF: u32 = 1 << 31;
/// Bits that the root takes, and of how many spans on it takes more: a root of these takes 1 MiB.
const ROOT_BITS: u32 = 16;
const WIDE_ROOT_BITS: u32 = 18;
const WIDE_FROM: usize = 1 << 12;
/// Spans that the program compares one by one.
pub(crate) const SPANS: usize = 4;

/// A trie.
#[derive(Debug, Default)]
pub(crate) struct Trie {
    pub(crate) root_bits: u32,
    pub(crate) root: Vec<u32>,
    pub(crate) nodes: Vec<Node>,
    /// Rows; none where there are two.
    pub(crate) leaves: Vec<u32>,
    /// The two: `bits` of nodes are set for the first.
    pub(crate) two: Option<[u32; 2]>,
}

/// What addresses have.
#[derive(Debug)]
pub(crate) enum Addresses {
    /// All the same row, but those of a few spans.
    Spans {
        /// The row of all others.
        other: u32,
        /// The first, how many more, and their row.
        spans: Vec<(u32, u32, u32)>,
    },
    Trie(Trie),
}

/// Where another row begins: all addresses up to the next such place have it.
type Begin = (u128, u32);

impl Addresses {
    /// Of the addresses of a trie, by the row of each class.
    pub(crate) fn of(trie: &Poptrie, is_v4: bool, row: impl Fn(u32) -> u32) -> Self {
        let begins = begins(trie, row);
        if let Some(few) = Self::few(&begins, is_v4) {
            return few;
        }
        Self::Trie(Trie::new(&begins))
    }

    fn few(begins: &[Begin], is_v4: bool) -> Option<Self> {
        // Both ends of the address space have it, where no prefix reaches there.
        let other = begins.first()?.1;
        let most = if is_v4 { 2 * SPANS + 1 } else { 1 };
        if begins.len() > most {
            return None;
        }
        let ends = begins
            .iter()
            .skip(1)
            .map(|(first, _)| *first - 1)
            .chain([u128::MAX]);
        let spans = begins.iter().zip(ends).filter(|((_, row), _)| *row != other);
        let spans: Vec<(u32, u32, u32)> = spans
            .map(|((first, row), last)| {
                let [first, last] = [*first, last].map(|address| (address >> 96) as u32);
                (first, last - first, *row)
            })
            .collect();
        (spans.len() <= SPANS).then_some(Self::Spans { other, spans })
    }
}

/// Where rows begin, in the order of addresses.
fn begins(trie: &Poptrie, row: impl Fn(u32) -> u32) -> Vec<Begin> {
    let mut walk = Walk {
        trie,
        row,
        begins: Vec::new(),
    };
    let bits = trie.root.len().trailing_zeros();
    for (slot, word) in trie.root.iter().enumerate() {
        let address = (slot as u128) << (128 - bits);
        if word & LEAF == 0 {
            walk.node(*word, address, bits);
        } else {
            walk.begin(address, word & !LEAF);
        }
    }
    walk.begins
}

struct Walk<'t, R> {
    trie: &'t Poptrie,
    row: R,
    begins: Vec<Begin>,
}

impl<R: Fn(u32) -> u32> Walk<'_, R> {
    fn begin(&mut self, address: u128, class: u32) {
        let row = (self.row)(class);
        if self.begins.last().is_none_or(|(_, last)| *last != row) {
            self.begins.push((address, row));
        }
    }

    fn node(&mut self, number: u32, address: u128, depth: u32) {
        let Some(node) = self.trie.nodes.get(number as usize) else {
            return;
        };
        let node = *node;
        let (mut child, mut leaf) = (node.first_child, node.first_leaf);
        // What stands behind a child has the leaf before it, and no bit of its own.
        let mut places = node.children | node.leaves | node.children << 1;
        while places != 0 {
            let slot = places.trailing_zeros();
            places &= places - 1;
            let at = address | (u128::from(slot) << (128 - STEP_BITS)) >> depth;
            if node.children >> slot & 1 != 0 {
                self.node(child, at, depth + STEP_BITS);
                child += 1;
                continue;
            }
            leaf += (node.leaves >> slot & 1) as u32;
            if let Some(class) = leaf
                .checked_sub(1)
                .and_then(|leaf| self.trie.leaves.get(leaf as usize))
            {
                self.begin(at, *class);
            }
        }
    }
}

impl Trie {
    fn new(begins: &[Begin]) -> Self {
        let root_bits = if begins.len() < WIDE_FROM {
            ROOT_BITS
        } else {
            WIDE_ROOT_BITS
        };
        let mut trie = Self {
            root_bits,
            two: two(begins),
            ..Self::default()
        };
        let mut rest = Rest { begins, row: 0 };
        for slot in 0..1_u128 << root_bits {
            let first = slot << (128 - root_bits);
            let within = rest.take(first, first | u128::MAX >> root_bits);
            let word = within.only().map_or_else(
                || {
                    trie.nodes.push(Node::default());
                    let node = trie.nodes.len() - 1;
                    trie.node(node, within, (first, root_bits));
                    node as u32
                },
                |row| LEAF | row,
            );
            trie.root.push(word);
        }
        trie
    }

    /// Makes the node of the addresses that have the first `depth` bits of this one.
    fn node(&mut self, at: usize, mut rest: Rest<'_>, (base, depth): (u128, u32)) {
        let mut node = Node {
            first_child: self.nodes.len() as u32,
            first_leaf: self.leaves.len() as u32,
            ..Node::default()
        };
        let below = (depth + STEP_BITS).min(128);
        let mut children = Vec::new();
        let mut before = None;
        for slot in 0..1_u32 << STEP_BITS {
            // Where an address has fewer bits left than the step, several slots are of one, and the first is asked for.
            let first = base | (u128::from(slot) << (128 - STEP_BITS)) >> depth;
            let within = rest.take(first, first | u128::MAX.checked_shr(below).unwrap_or(0));
            let Some(row) = within.only() else {
                node.children |= 1 << slot;
                children.push((within, first));
                continue;
            };
            if let Some([one, _]) = self.two {
                node.leaves |= u64::from(row == one) << slot;
            } else if before != Some(row) {
                node.leaves |= 1 << slot;
                self.leaves.push(row);
                before = Some(row);
            }
        }
        self.nodes[at] = node;
        let first_child = self.nodes.len();
        self.nodes.resize(first_child + children.len(), Node::default());
        for (child, (within, first)) in children.into_iter().enumerate() {
            self.node(first_child + child, within, (first, below));
        }
    }
}

/// The rows, where there are two.
fn two(begins: &[Begin]) -> Option<[u32; 2]> {
    let other = begins.first()?.1;
    let one = begins.iter().find(|(_, row)| *row != other)?.1;
    let others = begins.iter().all(|(_, row)| [one, other].contains(row));
    others.then_some([one, other])
}

/// Rows from some address on.
#[derive(Clone, Copy)]
struct Rest<'b> {
    /// Where they change.
    begins: &'b [Begin],
    /// That before the first change.
    row: u32,
}

impl<'b> Rest<'b> {
    /// Those of these addresses, which are next; what is behind them is left.
    fn take(&mut self, first: u128, last: u128) -> Rest<'b> {
        if let Some(((at, row), behind)) = self.begins.split_first() {
            if *at == first {
                *self = Rest {
                    begins: behind,
                    row: *row,
                };
            }
        }
        let count = self.begins.iter().take_while(|(at, _)| *at <= last).count();
        let (begins, behind) = self.begins.split_at(count);
        let within = Rest {
            begins,
            row: self.row,
        };
        self.begins = behind;
        self.row = begins.last().map_or(self.row, |(_, row)| *row);
        within
    }

    /// The row, if they all have one.
    fn only(&self) -> Option<u32> {
        self.begins.is_empty().then_some(self.row)
    }
}
