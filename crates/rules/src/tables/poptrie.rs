//! The longest prefix of an address, by steps of six bits whose nodes count their bits to find children and leaves: Asai
//! and Ohara, "Poptrie" (SIGCOMM 2015).

/// Bits of the address that the root is indexed by.
pub const ROOT_BITS: u32 = 16;
/// Bits of the address that a node takes.
pub const STEP_BITS: u32 = 6;
/// In a word of the root: the rest is a class, not a node.
pub const LEAF: u32 = 1 << 31;

/// A node: 64 slots, each a child or a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Node {
    /// Slots that are children.
    pub children: u64,
    /// Slots that are leaves and differ from the leaf before them.
    pub leaves: u64,
    /// Where its children begin.
    pub first_child: u32,
    /// Where its leaves begin.
    pub first_leaf: u32,
}

/// A trie of classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Poptrie {
    /// By the first [`ROOT_BITS`] bits.
    pub root: Vec<u32>,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All leaves: classes.
    pub leaves: Vec<u32>,
}

/// A prefix, with what makes the class of the addresses in it out of that of the addresses around it.
pub(super) struct Entry {
    pub(super) address: u128,
    pub(super) len: u8,
    pub(super) atom: u32,
}

impl Poptrie {
    /// The trie of these prefixes, sorted by address and length; `outside` is the class of addresses in none, and `within`
    /// that of addresses of a class that lie in a prefix with this atom, too.
    pub(super) fn new(entries: &[Entry], outside: u32, within: &mut impl FnMut(u32, u32) -> u32) -> Self {
        let mut trie = Self {
            root: vec![LEAF | outside; 1 << ROOT_BITS],
            ..Self::default()
        };
        let mut classes = vec![outside; 1 << ROOT_BITS];
        let below = fill(entries, 0, ROOT_BITS, &mut classes, within);
        for (word, class) in trie.root.iter_mut().zip(&classes) {
            *word = LEAF | class;
        }
        for (slot, below) in below {
            let node = trie.nodes.len();
            trie.nodes.push(Node::default());
            trie.root[slot] = node as u32;
            trie.node(node, below, (ROOT_BITS, classes[slot]), within);
        }
        trie
    }

    fn node(
        &mut self,
        at: usize,
        entries: &[Entry],
        (depth, around): (u32, u32),
        within: &mut impl FnMut(u32, u32) -> u32,
    ) {
        let mut classes = [around; 1 << STEP_BITS];
        let below = fill(entries, depth, STEP_BITS, &mut classes, within);
        let mut node = Node {
            first_child: self.nodes.len() as u32,
            first_leaf: self.leaves.len() as u32,
            ..Node::default()
        };
        for (slot, _) in &below {
            node.children |= 1 << slot;
        }
        let mut last = None;
        for (slot, class) in classes.iter().enumerate() {
            if node.children & 1 << slot == 0 && last != Some(*class) {
                node.leaves |= 1 << slot;
                self.leaves.push(*class);
                last = Some(*class);
            }
        }
        self.nodes[at] = node;
        self.nodes.resize(self.nodes.len() + below.len(), Node::default());
        for (child, (slot, below)) in below.into_iter().enumerate() {
            self.node(
                node.first_child as usize + child,
                below,
                (depth + STEP_BITS, classes[slot]),
                within,
            );
        }
    }

    /// The class of an address: IPv6, or IPv4 in the upper 32 bits.
    #[inline]
    pub fn class(&self, address: u128) -> u32 {
        let mut word = self.root[(address >> (128 - ROOT_BITS)) as usize];
        let mut rest = address << ROOT_BITS;
        while word & LEAF == 0 {
            let Some(node) = self.nodes.get(word as usize) else {
                return 0;
            };
            let slot = (rest >> (128 - STEP_BITS)) as u32;
            let up_to = u64::MAX >> (63 - slot);
            if node.children >> slot & 1 == 0 {
                let leaf = node.first_leaf + (node.leaves & up_to).count_ones() - 1;
                return self.leaves.get(leaf as usize).copied().unwrap_or_default();
            }
            word = node.first_child + (node.children & up_to).count_ones() - 1;
            rest <<= STEP_BITS;
        }
        word & !LEAF
    }
}

/// Gives the slots of `bits` bits at `depth` their classes by the prefixes that end there; what goes on below each slot is
/// returned.
fn fill<'e>(
    entries: &'e [Entry],
    depth: u32,
    bits: u32,
    classes: &mut [u32],
    within: &mut impl FnMut(u32, u32) -> u32,
) -> Vec<(usize, &'e [Entry])> {
    let end = (depth + bits).min(128);
    let slot_of = |entry: &Entry| (entry.address << depth >> (128 - bits)) as usize;
    let mut below = Vec::new();
    let mut at = 0;
    while let Some(entry) = entries.get(at) {
        let slot = slot_of(entry);
        if u32::from(entry.len) <= end {
            let slots = 1_usize << (depth + bits - u32::from(entry.len));
            for class in &mut classes[slot..slot + slots] {
                *class = within(*class, entry.atom);
            }
            at += 1;
        } else {
            // Sorted: what ends above the same slot has come already, and what goes on below it stands together.
            let rest = &entries[at..];
            let count = rest.partition_point(|entry| slot_of(entry) == slot);
            below.push((slot, &rest[..count]));
            at += count;
        }
    }
    below
}
