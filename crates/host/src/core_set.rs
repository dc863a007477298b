//! Cores and sets of them, in the kernel's notation for lists.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// More than any kernel is built for; bounds what a list may ask for.
const CORE_MAX: u32 = 8191;

/// A logical CPU, by the kernel's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Core(pub u32);

impl fmt::Display for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of cores, read and printed as the kernel does: `0-3,5`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct CoreSet(BTreeSet<Core>);

impl CoreSet {
    /// Of first and last cores, as the kernel lists them for a thread.
    pub(crate) fn of_ranges(ranges: &[(u32, u32)]) -> Self {
        let cores = ranges.iter().flat_map(|(first, last)| (*first..=*last).map(Core));
        cores.collect()
    }

    /// The cores, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Core> + '_ {
        self.0.iter().copied()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the core is one of them.
    pub fn contains(&self, core: Core) -> bool {
        self.0.contains(&core)
    }

    /// The cores of this set that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// The cores of both sets.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }

    /// The cores that are in both sets.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// What of `old` may stay where these cores are all there are to have, so that nothing comes onto a core that somebody has
    /// left out; all of these where it had none of them.
    #[must_use]
    pub fn kept_of(&self, old: &Self) -> Self {
        let kept = self.common(old);
        if kept.is_empty() { self.clone() } else { kept }
    }

    /// For a sentence: "core 3", "cores 2,3".
    pub fn in_words(&self) -> String {
        match self.len() {
            0 => "no core".to_owned(),
            1 => format!("core {self}"),
            _ => format!("cores {self}"),
        }
    }

    /// As the kernel's masks are written: hexadecimal, in groups of 32 cores, the highest first.
    pub fn mask(&self) -> String {
        let top = self.0.last().map_or(0, |core| core.0 / 32);
        let group = |group: u32| {
            let bits = self.0.range(Core(group * 32)..=Core(group * 32 + 31));
            bits.fold(0_u32, |word, core| word | 1 << (core.0 % 32))
        };
        let first = format!("{:x}", group(top));
        let rest = (0..top).rev().map(|word| format!(",{:08x}", group(word)));
        std::iter::once(first).chain(rest).collect()
    }

    /// Reads what [`CoreSet::mask`] writes.
    pub fn from_mask(text: &str) -> Option<Self> {
        let mut cores = BTreeSet::new();
        for (index, word) in text.trim().rsplit(',').enumerate() {
            let word = u32::from_str_radix(word, 16).ok()?;
            let base = u32::try_from(index).ok()?.checked_mul(32)?;
            cores.extend(
                (0..32)
                    .filter(|bit| word & 1 << bit != 0)
                    .map(|bit| Core(base + bit)),
            );
        }
        Some(Self(cores))
    }
}

impl FromIterator<Core> for CoreSet {
    fn from_iter<I: IntoIterator<Item = Core>>(cores: I) -> Self {
        Self(cores.into_iter().collect())
    }
}

/// A list of cores that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid core list '{0}'; write cores as 0-3,5 (each at most {CORE_MAX})")]
pub struct CoreListError(String);

impl FromStr for CoreSet {
    type Err = CoreListError;

    /// Reads `0-3,5`. An empty list is a set of none, as the kernel prints it.
    fn from_str(text: &str) -> Result<Self, CoreListError> {
        let error = || CoreListError(text.to_owned());
        let number = |part: &str| match part.trim().parse::<u32>() {
            Ok(number) if number <= CORE_MAX => Ok(number),
            _ => Err(error()),
        };
        let mut cores = BTreeSet::new();
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(error());
            }
            cores.extend((first..=last).map(Core));
        }
        Ok(Self(cores))
    }
}

impl fmt::Display for CoreSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for Core(core) in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == core => *last = core,
                _ => ranges.push((core, core)),
            }
        }
        let words = ranges.into_iter().map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        });
        f.write_str(&words.collect::<Vec<_>>().join(","))
    }
}

crate::as_text::as_text!(CoreSet);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_written_as_the_kernel_does() {
        for (list, mask) in [
            ("0-1", "3"),
            ("", "0"),
            ("32", "1,00000000"),
            ("1,33-35", "e,00000002"),
        ] {
            let set: CoreSet = list.parse().unwrap();
            assert_eq!(set.mask(), mask);
            assert_eq!(CoreSet::from_mask(mask), Some(set));
        }
        let words = |list: &str| list.parse::<CoreSet>().unwrap().in_words();
        assert_eq!(
            [words(""), words("3"), words("2-4")],
            ["no core", "core 3", "cores 2-4"]
        );
        assert_eq!(CoreSet::from_mask("x"), None);
    }
}
