//! What is written down of a filter that stays: how its rules are spelled, and what was counted by generations that are gone.

use std::collections::BTreeMap;

use libbpf_rs::MapHandle;
use rules::{Count, Malformed, Spelling, Totals, Verdict};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::counts;

/// Version of what is kept: of `state`, and of the counters and groups that it names.
pub(super) const VERSION: u32 = 1;

/// What is known of a filter that stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub(super) version: u32,
    /// The dropless that wrote it.
    pub by: String,
    /// The interface's name.
    pub interface: String,
    pub(super) index: u32,
    /// The rule file.
    pub file: String,
    /// When the filter was put there, ms since 1970.
    pub since_unix_ms: u64,
    /// The process that put the rules in force last.
    pub process: u32,
    /// The number of the last generation that was made ready.
    pub generation: u32,
    pub(super) buckets: u32,
    pub(super) seed: u64,
    /// Those that count, or may.
    pub(super) generations: Vec<Named>,
    /// What those before them counted.
    pub(super) counted: Counted,
}

/// A generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Named {
    pub(super) number: u32,
    /// Its rules, as they are spelled, and the default; whether they deny.
    pub(super) rules: Vec<(String, bool)>,
    /// What the counters behind them are of.
    pub(super) reasons: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counted {
    /// Packets and bytes.
    pub(super) rules: Vec<(String, bool, u64, u64)>,
    pub(super) malformed: BTreeMap<String, (u64, u64)>,
    pub(super) full: (u64, u64),
}

/// Rules that are no longer in force, or not ours, and what they counted.
#[derive(Debug)]
pub(crate) struct Old {
    pub(crate) spellings: Vec<Spelling>,
    pub(crate) counts: MapHandle,
    reasons: Vec<String>,
}

fn names(of: impl Iterator<Item = &'static str>) -> Vec<String> {
    of.map(str::to_owned).collect()
}

pub(super) fn reasons() -> Vec<String> {
    names(Malformed::ALL.iter().map(|reason| reason.name()))
}

impl Old {
    pub(crate) fn ours(spellings: Vec<Spelling>, counts: MapHandle) -> Self {
        Self {
            spellings,
            counts,
            reasons: reasons(),
        }
    }

    pub(super) fn new(named: &Named, counts: MapHandle) -> Self {
        let rules = named.rules.iter();
        Self {
            spellings: rules.map(|(text, denies)| spelling(text, *denies)).collect(),
            counts,
            reasons: named.reasons.clone(),
        }
    }

    pub(crate) fn add_to(&self, totals: &mut Totals) -> Result<(), Error> {
        // The last spelling is the default's.
        let rules = self.spellings.len().saturating_sub(1);
        let counts = counts::of_generation(&self.counts, rules, &self.reasons)?;
        totals.add(&self.spellings, &counts);
        Ok(())
    }
}

fn spelling(text: &str, denies: bool) -> Spelling {
    Spelling {
        text: text.to_owned(),
        verdict: if denies { Verdict::Deny } else { Verdict::Allow },
    }
}

impl Counted {
    pub(super) fn of(totals: &Totals) -> Self {
        let both = |count: &Count| (count.packets, count.bytes);
        let rules = totals.rules.iter();
        let rules = rules.map(|(rule, count)| {
            (
                rule.text.clone(),
                rule.verdict == Verdict::Deny,
                count.packets,
                count.bytes,
            )
        });
        let malformed = Malformed::ALL.iter().zip(&totals.malformed);
        Self {
            rules: rules.collect(),
            malformed: malformed
                .map(|(reason, count)| (reason.name().to_owned(), both(count)))
                .collect(),
            full: both(&totals.full),
        }
    }

    pub(super) fn totals(&self) -> Totals {
        let count = |(packets, bytes): (u64, u64)| Count { packets, bytes };
        let rules = self.rules.iter();
        Totals {
            rules: rules
                .map(|(text, denies, packets, bytes)| (spelling(text, *denies), count((*packets, *bytes))))
                .collect(),
            malformed: Malformed::ALL.map(|reason| {
                self.malformed
                    .get(reason.name())
                    .copied()
                    .map_or_else(Count::default, count)
            }),
            full: count(self.full),
        }
    }
}
