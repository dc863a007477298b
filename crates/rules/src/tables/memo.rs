//! What tables said before: packets of the same classes meet the same rule first, and it need not be looked for again.
//!
//! Bounded, and exact: a place that another combination of classes has is looked up anew.

/// Tables that a packet has a class in.
pub(super) const TABLES: usize = 8;
/// Combinations that are remembered: their places lie in the second cache of a core.
const PLACES: usize = 1 << 12;
/// No rule: the default decides.
const NO_RULE: u32 = u32::MAX;

/// What a packet is in each table; 0 in one that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Classes(pub(super) [u32; TABLES]);

impl Classes {
    /// A number that depends on all of them.
    #[inline]
    fn mixed(&self) -> usize {
        let mix = |all: u64, class: &u32| {
            (all.rotate_left(9) ^ u64::from(*class)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        };
        (self.0.iter().fold(0, mix) >> 32) as usize
    }
}

/// The first rule of combinations of classes, by the tables of one rule set.
#[derive(Clone, Debug)]
pub struct Memo(Box<[Place]>);

/// A combination, and the first rule that holds for it.
#[derive(Clone, Copy, Debug)]
struct Place {
    classes: Classes,
    rule: u32,
}

impl Default for Memo {
    /// That knows nothing.
    fn default() -> Self {
        // No table has so many classes.
        let nothing = Place {
            classes: Classes([u32::MAX; TABLES]),
            rule: NO_RULE,
        };
        Self(vec![nothing; PLACES].into())
    }
}

impl Memo {
    /// The first rule that holds for these classes, which `find` knows.
    #[inline]
    pub(super) fn rule(&mut self, classes: &Classes, find: impl FnOnce() -> Option<usize>) -> Option<usize> {
        let place = &mut self.0[classes.mixed() & (PLACES - 1)];
        if place.classes != *classes {
            *place = Place {
                classes: *classes,
                rule: find().map_or(NO_RULE, |rule| rule as u32),
            };
        }
        (place.rule != NO_RULE).then_some(place.rule as usize)
    }
}
