//! What rules have met: of one rule set, and of all that were in force one after the other.

use std::collections::{HashMap, HashSet};
use std::ops::AddAssign;

use crate::{Action, Malformed, RuleSet, Verdict};

/// What a rule, a reason or the default has met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// All counts of one rule set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By rule; of a rate, what was above it.
    pub rules: Vec<Count>,
    /// What no rule decided.
    pub default: Count,
    /// By reason, in the order of [`Malformed::ALL`]: of packets that are counted above, too.
    pub malformed: [Count; Malformed::ALL.len()],
    /// Dropped by a rate that had no entry left for their group: counted at its rule, too.
    pub full: Count,
}

/// What stays of a rule when the next set comes: two rules of one spelling are one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spelling {
    /// As it is written.
    pub text: String,
    /// What became of the packets that are counted at it.
    pub verdict: Verdict,
}

impl RuleSet {
    /// How its rules are spelled, and last its default.
    pub fn spellings(&self) -> Vec<Spelling> {
        let rules = self.rules.iter().map(|rule| Spelling {
            text: rule.text.clone(),
            verdict: match rule.action {
                Action::Decide(verdict) => verdict,
                Action::Limit(_) => Verdict::Deny,
            },
        });
        let default = match self.default {
            Verdict::Allow => "default allow",
            Verdict::Deny => "default deny",
        };
        let default = Spelling {
            text: default.to_owned(),
            verdict: self.default,
        };
        rules.chain([default]).collect()
    }
}

/// What was counted since rules are in force, whatever set it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// By rule, defaults among them.
    pub rules: HashMap<Spelling, Count>,
    /// By reason, in the order of [`Malformed::ALL`].
    pub malformed: [Count; Malformed::ALL.len()],
    /// Dropped since a rate had no entry left.
    pub full: Count,
}

/// What stands for rules whose own counts are no longer told.
const GONE: &str = "rules that are gone";
/// So many rules that are gone have their counts told one by one.
const GONE_MAX: usize = 1024;

impl Totals {
    /// Tells what rules met that are not among `kept` together, once they are too many: rules that come and go for ever take no
    /// more memory than that.
    pub fn forget(&mut self, kept: &[Spelling]) {
        if self.rules.len() <= kept.len() + GONE_MAX {
            return;
        }
        let kept: HashSet<&Spelling> = kept.iter().collect();
        let mut gone = HashMap::new();
        self.rules.retain(|spelling, count| {
            let is_kept = kept.contains(spelling);
            if !is_kept {
                *gone.entry(spelling.verdict).or_insert_with(Count::default) += *count;
            }
            is_kept
        });
        for (verdict, count) in gone {
            let text = GONE.to_owned();
            *self.rules.entry(Spelling { text, verdict }).or_default() += count;
        }
    }

    /// Adds what a set counted whose rules are spelled so ([`RuleSet::spellings`]).
    pub fn add(&mut self, spellings: &[Spelling], counts: &Counts) {
        for (spelling, count) in spellings.iter().zip(counts.rules.iter().chain([&counts.default])) {
            // Most rules of a large set meet nothing.
            if *count != Count::default() {
                *self.rules.entry(spelling.clone()).or_default() += *count;
            }
        }
        for (sum, count) in self.malformed.iter_mut().zip(&counts.malformed) {
            *sum += *count;
        }
        self.full += counts.full;
    }

    /// Adds what another filter counted.
    pub fn add_all(&mut self, other: &Self) {
        for (spelling, count) in &other.rules {
            *self.rules.entry(spelling.clone()).or_default() += *count;
        }
        for (sum, count) in self.malformed.iter_mut().zip(&other.malformed) {
            *sum += *count;
        }
        self.full += other.full;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_come_and_go_take_no_more_room_and_lose_no_count() {
        let spelling = |number: u32| Spelling {
            text: format!("deny from 10.0.0.{number}"),
            verdict: Verdict::Deny,
        };
        let one = Count {
            packets: 1,
            bytes: 60,
        };
        let kept = [spelling(0)];
        let mut totals = Totals::default();
        for number in 0..3 * GONE_MAX as u32 {
            *totals.rules.entry(spelling(number)).or_default() += one;
            totals.forget(&kept);
            assert!(totals.rules.len() <= GONE_MAX + 2);
            assert_eq!(totals.rules[&spelling(0)], one);
        }
        let packets: u64 = totals.rules.values().map(|count| count.packets).sum();
        assert_eq!(packets, 3 * GONE_MAX as u64);
    }
}
