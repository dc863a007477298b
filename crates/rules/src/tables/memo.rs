//! What tables said before: packets of the same header, or of the same classes, meet the same rule first, and it need not be
//! looked for again.
//!
//! Bounded, and exact: a place that another header or another combination of classes has is looked up anew.

use super::header::Header;
use crate::{Decision, Verdict};

/// Tables that a packet has a class in.
pub(super) const TABLES: usize = 8;
/// Where each has its class: what tells packets apart best first.
pub(super) const KIND: usize = 0;
pub(super) const SOURCE: usize = 1;
pub(super) const DESTINATION: usize = 2;
pub(super) const DESTINATION_PORT: usize = 3;
pub(super) const SOURCE_PORT: usize = 4;
pub(super) const DETAIL: usize = 5;
pub(super) const VLAN: usize = 6;
pub(super) const ETHER_TYPE: usize = 7;
/// Headers and combinations that are remembered: their places lie in the second cache of a core.
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 12;
/// Odd numbers without a pattern: of common mixers of 64 bits.
const FACTORS: [u64; TABLES / 2] = [
    0x9E37_79B9_7F4A_7C15,
    0xBF58_476D_1CE4_E5B9,
    0x94D0_49BB_1331_11EB,
    0xD6E8_FEB8_6659_FD93,
];
/// Packets between two looks at how many headers were new.
const WINDOW: u32 = 1 << 10;
/// So many times as long headers are not asked for after most were new: a look costs a new header as much as deciding does.
const ASIDE: u32 = 15;
/// No rule: the default decides.
const NO_RULE: u32 = u32::MAX;

/// What a packet is in each table; 0 in one that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Classes(pub(super) [u32; TABLES]);

impl Classes {
    /// A number that depends on all of them, by multiplications that wait for none of the others.
    #[inline]
    fn mixed(&self) -> usize {
        let pairs = self.0.chunks_exact(2).zip(FACTORS);
        let mixed = pairs.map(|(pair, factor)| {
            let pair = u64::from(pair[0]) | u64::from(pair[1]) << 32;
            pair.wrapping_mul(factor)
        });
        (mixed.fold(0, |all, one| all ^ one) >> 40) as usize
    }
}

/// What headers and combinations of classes meet, by the tables of one rule set.
#[derive(Clone, Debug)]
pub struct Memo {
    decided: Box<[Decided]>,
    first: Box<[Place]>,
    habit: Habit,
}

/// Whether headers come again.
#[derive(Clone, Copy, Debug)]
struct Habit {
    is_new: bool,
    /// Packets until this is asked again.
    left: u32,
    /// Headers that were not known, since it was asked.
    missed: u32,
}

/// A header, and what was decided about it.
#[derive(Clone, Copy, Debug)]
struct Decided {
    header: Header,
    decision: Decision,
}

/// A combination, and the first rule that holds for it.
#[derive(Clone, Copy, Debug)]
struct Place {
    classes: Classes,
    rule: u32,
}

impl Default for Memo {
    /// That knows nothing.
    fn default() -> Self {
        let undecided = Decided {
            header: Header(0, 0),
            decision: Decision {
                verdict: Verdict::Deny,
                rule: None,
                is_full: false,
            },
        };
        // No table has so many classes.
        let nothing = Place {
            classes: Classes([u32::MAX; TABLES]),
            rule: NO_RULE,
        };
        Self {
            decided: vec![undecided; PLACES].into(),
            first: vec![nothing; PLACES].into(),
            habit: Habit {
                is_new: false,
                left: WINDOW,
                missed: 0,
            },
        }
    }
}

impl Habit {
    #[cold]
    fn look(&mut self) {
        let is_new = !self.is_new && self.missed > WINDOW / 2;
        *self = Self {
            is_new,
            left: if is_new { ASIDE * WINDOW } else { WINDOW },
            missed: 0,
        };
    }
}

impl Memo {
    /// Whether headers are worth asking for in the next so many packets: not after most were new.
    #[inline]
    pub(super) fn knows(&mut self, packets: usize) -> bool {
        match self.habit.left.checked_sub(packets as u32) {
            Some(left) => self.habit.left = left,
            None => self.habit.look(),
        }
        !self.habit.is_new
    }

    /// What was decided about a packet of this header.
    #[inline]
    pub(super) fn decision(&self, header: Header) -> Option<Decision> {
        let place = self.decided.get(header.mixed::<PLACE_BITS>())?;
        (place.header == header).then_some(place.decision)
    }

    /// Remembers a decision that every packet of this header meets.
    #[inline]
    pub(super) fn remember(&mut self, header: Header, decision: Decision) {
        self.habit.missed += 1;
        self.decided[header.mixed::<PLACE_BITS>()] = Decided { header, decision };
    }

    /// The first rule that holds for these classes, which `find` knows.
    #[inline]
    pub(super) fn rule(&mut self, classes: &Classes, find: impl FnOnce() -> Option<usize>) -> Option<usize> {
        let place = &mut self.first[classes.mixed() & (PLACES - 1)];
        if place.classes != *classes {
            *place = Place {
                classes: *classes,
                rule: find().map_or(NO_RULE, |rule| rule as u32),
            };
        }
        (place.rule != NO_RULE).then_some(place.rule as usize)
    }
}
