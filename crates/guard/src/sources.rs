//! The source prefixes that hold a flood and nothing that is known to be legitimate.

use std::collections::HashMap;

use rules::{Facts, Layer, Prefix};

use crate::settings::Cap;

/// Prefixes of one rule.
pub const PREFIXES_MAX: usize = 1024;
/// A prefix that is not a single address must have so many of the flood's packets to be blamed.
const PREFIX_MIN: usize = 16;
/// A single address, so many.
const HOST_MIN: usize = 3;
/// A narrower prefix stands for a wider one if it has such a share of its packets.
const SAME: f64 = 0.9;
const V4_LENS: [u8; 4] = [8, 16, 24, 32];
const V6_LENS: [u8; 4] = [32, 48, 64, 128];

/// Prefixes of sources of `flood`, none of which holds one of `legitimate`; the narrowest ones.
pub fn prefixes(flood: &[&Facts], legitimate: &[(u128, bool)], cap: &Cap) -> Vec<Prefix> {
    let mut all = Vec::new();
    for is_v6 in [false, true] {
        let (lens, least) = if is_v6 {
            (V6_LENS, cap.v6_len)
        } else {
            (V4_LENS, cap.v4_len)
        };
        let lens: Vec<u8> = lens.into_iter().filter(|len| *len >= least).collect();
        let of = |facts: &&&Facts| (facts.layer == Layer::V6) == is_v6;
        let sources: Vec<u128> = flood.iter().filter(of).map(|facts| facts.source).collect();
        let known: Vec<u128> = legitimate
            .iter()
            .filter(|known| known.1 == is_v6)
            .map(|known| known.0)
            .collect();
        Search {
            is_v6,
            known: &known,
            all: &mut all,
        }
        .look(&sources, &lens);
    }
    // Those with most packets first, where there are too many.
    all.sort_by_key(|(packets, prefix)| (std::cmp::Reverse(*packets), *prefix));
    all.truncate(PREFIXES_MAX);
    let mut all: Vec<Prefix> = all.into_iter().map(|(_, prefix)| prefix).collect();
    all.sort_unstable();
    all
}

struct Search<'s> {
    is_v6: bool,
    known: &'s [u128],
    all: &'s mut Vec<(usize, Prefix)>,
}

impl Search<'_> {
    /// Among these sources, at the first of these lengths.
    fn look(&mut self, sources: &[u128], lens: &[u8]) {
        let Some((len, longer)) = lens.split_first() else {
            return;
        };
        let mut by_prefix: HashMap<Prefix, Vec<u128>> = HashMap::new();
        for source in sources {
            let prefix = Prefix::of_bits(*source, self.is_v6, *len);
            by_prefix.entry(prefix).or_default().push(*source);
        }
        for (prefix, within) in by_prefix {
            self.judge(prefix, &within, longer);
        }
    }

    fn judge(&mut self, prefix: Prefix, within: &[u128], longer: &[u8]) {
        let has_known = self
            .known
            .iter()
            .any(|source| prefix.contains(*source, self.is_v6));
        let least = if longer.is_empty() { HOST_MIN } else { PREFIX_MIN };
        // Few narrower ones that have almost all of it are the better answer, and so they are where this cannot be.
        let before = self.all.len();
        self.look(within, longer);
        let narrower = &self.all[before..];
        let explained: usize = narrower.iter().map(|(packets, _)| packets).sum();
        let is_as_good =
            !narrower.is_empty() && narrower.len() <= 4 && explained as f64 >= SAME * within.len() as f64;
        if !has_known && !is_as_good && within.len() >= least {
            self.all.truncate(before);
            self.all.push((within.len(), prefix));
        }
    }
}
