//! What rules have met: of one rule set, and of all that were in force one after the other.

use std::collections::HashMap;
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

impl Totals {
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
}
