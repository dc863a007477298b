//! The packets that were seen last: they lie ready to be explained.

use rules::Facts;

use crate::block::Meets;

/// So many.
const RECENT: usize = 1 << 15;

/// A packet that lies ready.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub facts: Facts,
    pub time_ns: u64,
    /// A rule meets it already.
    pub is_met: bool,
    /// None did when it came: it is among what was counted.
    pub is_counted: bool,
}

/// A ring of them.
#[derive(Debug, Default)]
pub struct Recent {
    ring: Vec<Seen>,
    /// Where the next one goes.
    next: usize,
}

impl Recent {
    /// One more.
    pub fn push(&mut self, seen: Seen) {
        if self.ring.len() < RECENT {
            self.ring.push(seen);
        } else {
            self.ring[self.next] = seen;
        }
        self.next = (self.next + 1) % RECENT;
    }

    /// All of them, the newest first.
    pub fn newest(&self) -> impl Iterator<Item = &Seen> {
        (1..=self.ring.len()).map(|back| &self.ring[(self.next + RECENT - back) % RECENT])
    }

    /// A rule meets some of them from now on.
    pub fn meet(&mut self, meets: &Meets) {
        for seen in &mut self.ring {
            seen.is_met |= meets.holds(&Ok(seen.facts));
        }
    }

    /// When the first packet came that these conditions hold for, of those since then: then, where that is not known any more.
    pub fn first_of(&self, meets: &Meets, begun_ns: u64) -> Option<u64> {
        let is_cut = self.ring.len() == RECENT && self.ring[self.next].time_ns > begun_ns;
        if is_cut {
            return Some(begun_ns);
        }
        let since = self.ring.iter().filter(|seen| seen.time_ns >= begun_ns);
        let met = since.filter(|seen| meets.holds(&Ok(seen.facts)));
        met.map(|seen| seen.time_ns).min()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ring.len()
    }
}
